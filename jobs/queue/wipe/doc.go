// Package wipe deletes all that an installation has in Redis. It says before what is there, and
// whether a node or a server still works with it.
//
// Floor 4: may import jobs/queue and below.
package wipe

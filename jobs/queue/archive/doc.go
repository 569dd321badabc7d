// Package archive copies all that an installation has in Redis, while work goes on, and puts such a
// copy into an empty Redis, where nothing of it runs a second time.
//
// One script reads the open tasks of a zone, as they are at one moment. Contents that do
// not change any more are read before it, so that the script is short.
//
// Floor 5: may import the handles of jobs/queue, and what is below.
package archive

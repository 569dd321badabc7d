// Package read shows people the data in Redis: tasks, jobs, the reason why a job waits, output of
// hosts, the depth of a zone's queue. It changes nothing, and reads in bounded pages.
//
// Floor 4: may import the connection and all below it.
package read

// Package read shows people what is in Redis: tasks, jobs, why a job waits, what hosts
// said, how much waits in a zone. It changes nothing, and reads in bounded pages.
//
// Floor 4: may import the connection and all below it.
package read

// Package submit puts tasks into the queue, commits them, and ends their jobs that have not begun.
// It decides which task may do a job again.
//
// Floor 4: may import the connection and all below it.
package submit

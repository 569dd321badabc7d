// Package happened reads the events of the past in pages: those of a task, of a job, or of the
// whole house in a time, by who gave the order and by kind.
//
// Floor 4: may import history and jobs.
package happened

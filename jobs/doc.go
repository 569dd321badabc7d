// Package jobs defines tasks, jobs, attempts and outcomes, the states of a job, and the
// transitions between them.
//
// A task is one request of an operator: this runbook on these hosts. A job is the part of a task
// for one host, the unit of queueing and locking. An attempt is one try at a job; it has a number
// and a token. The outcome is how a job ended; it is final.
//
// The package is pure: times and chance are arguments. The package jobs/queue keeps the jobs, and
// the processes of master and worker work on them; they all share the types of this package.
//
// Floor 1: may import fleet and windows.
package jobs

// Package jobs says what a task, a job, an attempt and an outcome are, which
// states a job can be in, and what may follow.
//
// A task is one request of an operator: this runbook on these hosts. A job is
// the part of a task for one host, the unit of queueing and locking. An attempt
// is one try at a job; it has a number and a token. The outcome is how a job
// ended; it is final.
//
// The package is pure: times and chance are arguments. The queue that keeps
// jobs is jobs/queue, the processes that work on them are master and worker;
// they all meet in the types of this package.
//
// Floor 1: may import fleet and windows.
package jobs

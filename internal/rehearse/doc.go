// Package rehearse runs a runbook against a pretended host with scripted answers, so that its
// author can hold it against what he means, as cases in a file beside it.
//
// The runbook is read, bound, frozen and run by the very code that does it for hosts: a real
// worker takes the job, attempt by attempt, from a queue of one job, in pretended time. Only
// the host is made up: each step gets the answers that the case says.
//
// Floor 6: may import worker, scripts, jobs, fleet/remote and what is below.
package rehearse

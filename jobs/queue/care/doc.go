// Package care keeps the queue in order: it repeats orders that a zone has not received, completes
// operations that were left half done, compares the counters with the jobs, reorders overdue jobs,
// and keeps account of what history still has to be asked.
//
// Floor 4: may import the connection and all below it.
package care

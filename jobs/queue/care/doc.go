// Package care keeps the queue in order, whoever works on it: it repeats orders that a zone
// has not heard, goes on with what was left half way, compares the counters with what is
// there, reorders what is overdue, and keeps account of what history has to hear.
//
// Floor 4: may import the connection and all below it.
package care

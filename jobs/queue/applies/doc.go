// Package applies stores the results of muster apply, and the origin of each entry, together with
// the entries themselves: all of an apply, or nothing of it.
//
// Floor 5: may import jobs/queue and its hub, and what is below.
package applies

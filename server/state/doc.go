// Package state says how the house is: nodes, queues, pauses, health, metrics, and the agreements
// that Redis has lost. It restores these, too.
//
// Floor 7: may import server/calendar, server/waits, server/agreed, server/historian, history, and
// what is below.
package state

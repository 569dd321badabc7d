// Package orders carries out orders of operators about work in the queue: pauses, the halt, gates,
// rollouts, clears and releases.
//
// An order about a pause or the halt is stored in the hub before any zone receives it. A zone that
// does not answer now receives it when it is tended; see package care.
//
// Floor 4: may import the connection and all below it.
package orders

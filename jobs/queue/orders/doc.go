// Package orders carries out what operators order about work that is in the queue: pauses,
// the halt, gates, rollouts, clears and releases.
//
// An order about a pause or the halt is written down in the hub before any zone hears of it.
// A zone that cannot be asked now hears of it when it is tended; see package care.
//
// Floor 4: may import the connection and all below it.
package orders

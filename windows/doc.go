// Package windows says when work may be done: service windows that customers
// approved, freezes, and recurring times, across changes of daylight saving time.
//
// It is pure: the time is an argument everywhere, and nothing here waits, reads a
// clock or keeps state. What a person writes is a reading of a clock on a wall, in
// the zone of a place; what comes out are instants. How readings become instants is
// in zone.go, and in no other file. Neither time.Date nor a cron library is asked
// about it, because they answer differently from one zone to the next where an hour
// is missing or comes twice (design §8).
//
// The parts, from the bottom:
//   - [Zone] and [Wall]: readings, gaps and folds.
//   - [Recurrence]: cron text, as readings. [Window]: start, end, cutoff, validity;
//     its [Occurrence]s. [Freeze]: when nothing may start.
//   - [Book]: all windows, freezes and [Approval]s of a fleet. It finds the windows
//     of a [Place], the openings ahead, and decides with [Book.Admit] whether work
//     may start now.
//   - [Schedule]: when recurring tasks are due.
//
// Floor 0: imports nothing of this module.
package windows

// Package windows says when work may be done: service windows that customers
// approved, freezes, and recurring times, across changes of daylight saving time.
//
// It is pure: the time is an argument everywhere, and nothing here waits, reads a clock or keeps
// state. People write readings of a clock on a wall, in the zone of a place; the package turns
// them into instants. Only zone.go converts readings to instants. It uses neither time.Date nor a
// cron library, because their results differ from zone to zone for an hour that is missing or
// occurs twice (design §8).
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

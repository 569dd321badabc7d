// Package history keeps tasks, jobs, attempts, steps, events and output in SQL for longer than
// Redis does. It is the only access to them.
//
// SQLite (a file) and PostgreSQL get the same text of each query. Writes come in batches: a batch
// is a part of a zone's event stream with all rows that follow from it, and the same transaction
// stores the new position in the stream. So a part that is delivered twice is stored once, whoever
// delivers it.
//
// The package does not guess: events that Redis dropped before they were read count as a gap, and
// a job whose end is not known has no outcome.
//
// Floor 3: may import api, jobs, internal/proc and below.
package history

// Package history keeps what happened for longer than Redis does: tasks, jobs,
// attempts, steps, events and output, in SQL. It is the only door to it.
//
// SQLite (a file) and PostgreSQL are asked by one text of each query. What is
// written comes in batches: a batch is one part of a zone's event stream with all
// that follows from it, and how far the stream was read is written in the same
// transaction. So what is delivered twice is stored once, whoever delivers it.
//
// What cannot be known is not guessed: events that Redis dropped before they were
// read are counted as a gap, and a job whose end is not known is in no outcome.
//
// Floor 3: may import api, jobs, internal/proc and below.
package history

// Package model is the queue without Redis: the state of one zone, and what each
// script does to it, as pure functions of that state, the clock and the arguments.
//
// It exists to be compared. A random walk in jobs/queue does the same to a Zone and
// to the scripts and holds the whole of both against each other after every step;
// whoever changes a script changes its counterpart here. So it is also the place in
// which to read what a script does, and what a simulation can use in place of Redis.
//
// Like a script, an operation reads and checks everything first and plans its
// writes; what it reads is the state before it. What it cannot show is a state half
// way through the writes.
//
// Not in the model: what hosts said (out:<id>), the details of events, and the hosts
// of an inventory beyond their traits. Notes, reasons and names must not be empty,
// because an empty one stands for none.
//
// Floor 2: may import jobs.
package model

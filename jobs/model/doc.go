// Package model is the queue without Redis: the state of one zone, and what each script does to
// it, as pure functions of that state, the clock and the arguments.
//
// It exists to be compared. A random walk in jobs/queue does the same steps with a Zone and with
// the scripts, and compares both states after each step, so a change of a script needs the same
// change here. The model also explains the scripts, and can replace Redis in a simulation.
//
// Like a script, an operation reads and checks everything first and plans its writes; what it
// reads is the state before it. So the model cannot show a state in the middle of the writes.
//
// Not in the model: the output of hosts (out:<id>), the details of events, and the hosts of an
// inventory beyond their traits. Notes, reasons and names must not be empty, because an empty one
// stands for none.
//
// Floor 2: may import jobs.
package model

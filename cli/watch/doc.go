// Package watch follows tasks, chains and gates to their end, and says in words how they
// stand. Several rooms of the command line show the same things, and show them alike.
//
// Floor 4: may import cli and below.
package watch

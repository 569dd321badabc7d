// Package watch follows tasks, chains and gates to their end, and describes their state in words.
// Several rooms of the command line show the same things, and use the same words.
//
// Floor 4: may import cli and below.
package watch

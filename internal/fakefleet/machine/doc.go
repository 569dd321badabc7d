// Package machine pretends to be a POSIX machine: a shell, some tools, process
// groups with signals, pipes, and a small file system, all in memory. Nothing of
// the machine it runs on is executed or read, but its clock.
//
// It knows as much of the shell and of its tools as jobs of a fleet use, and
// says so when something is beyond it: a command that is missing exits with 127,
// a part of the language that is missing ends the shell with 2. What it does
// know about signals, bounds and pipes it takes from the real ones, because that
// is what those who run commands have to get right.
//
// It knows nothing of SSH, hosts or faults: that is package fakefleet.
//
// Floor 1: may import nothing of the house.
package machine

// Package machine pretends to be a POSIX machine: it answers what package fleet/remote asks
// of a host, and runs the texts of commands on a small file system, all in memory.
//
// The records of steps, markers, uploads and stops are answered here in Go, with the states
// and the words of record.sh, marker.sh, put.sh and the scripts of an upload and of a stop; the
// tests of twins in fleet/remote hold these answers against those of a real shell. The scripts
// themselves are proven on real shells.
//
// The text of a command is interpreted, because operators try commands of their own on the
// hosts of muster demo --stay. The interpreter is that of mvdan.cc/sh: its files are on the
// pretended disk, and its commands are the few of tools.go. A command that is missing exits
// with 127. Nothing of the machine it runs on is executed, and nothing is read but its clock
// and process number.
//
// It knows nothing of SSH, hosts or faults: that is package fakefleet.
//
// Floor 1: may import nothing of the house.
package machine

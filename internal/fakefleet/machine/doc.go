// Package machine pretends to be a POSIX machine: it answers the requests of package fleet/remote
// to a host, and runs the texts of commands on a small file system, all in memory.
//
// Go code here answers the requests about records of steps, markers, uploads and stops, with the
// states and the words of record.sh, marker.sh, put.sh and the scripts of an upload and of a stop;
// tests in fleet/remote compare these answers with those of a real shell. The scripts themselves
// are tested on real shells.
//
// The text of a command is interpreted, because operators try commands of their own on the hosts of
// muster demo --stay. The interpreter is mvdan.cc/sh: its files are on the pretended disk, and its
// commands are the few of tools.go. A missing command exits with 127. The package executes nothing
// on the machine that it runs on, and reads nothing of it but its clock and process number.
//
// It knows nothing of SSH, hosts or faults: package fakefleet does.
//
// Floor 1: may import nothing of the house.
package machine

// Package fakefleet pretends to be thousands of SSH hosts on 127.77.x.y: for the
// demo, for tests and for load.
//
// One listener serves all of them, because a socket on the loopback device
// accepts every address of 127.0.0.0/8; the address that was dialled says which
// host is meant. Handshakes, keys and channels are those of real SSH. Behind
// them each host has a pretended machine, which keeps records of steps as a real
// one does: see package machine.
//
// Hosts misbehave on demand, see Personality. And they judge: each keeps a log of the commands that
// ran on it, so that the hosts prove that nothing ran twice at the same time, and not the program
// under test; see Fleet.Overlaps. A command continues when its connection is cut, as it does on a
// real host without a terminal, until its own end or the bound that timeout gave it.
//
// The package does not test SSH itself: tests of OpenSSH use OpenSSH.
//
// Floor 2: may import fleet, internal/fakefleet/machine and golang.org/x/crypto/ssh.
package fakefleet

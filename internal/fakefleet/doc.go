// Package fakefleet pretends to be thousands of SSH hosts on 127.77.x.y: for the
// demo, for tests and for load.
//
// One listener serves all of them, because a socket on the loopback device
// accepts every address of 127.0.0.0/8; the address that was dialled says which
// host is meant. Handshakes, keys and channels are those of real SSH. Behind
// them each host has a pretended machine, which keeps records of steps as a real
// one does: see package machine.
//
// Hosts misbehave on demand, see Personality. And they judge: each keeps a log
// of what ran on it, so that "nothing ran twice at the same time" is said by
// the hosts and not by the one who claims it, see Fleet.Overlaps. A command
// goes on when its connection is cut, as it does on a real host without a
// terminal, until its own end or the bound that timeout gave it.
//
// It is no test of SSH itself: what OpenSSH does is asked of OpenSSH.
//
// Floor 2: may import fleet, internal/fakefleet/machine and golang.org/x/crypto/ssh.
package fakefleet

// Package hosttest pretends hosts that are as real as one machine allows: each is
// a set of namespaces (network, mount, process, host name) with an sshd in it.
//
// A test that needs such hosts begins with [Inside]: it goes on in namespaces of its
// own, in which it is alone with its hosts, so that nothing it does to networks,
// rules or mounts is seen by the machine. A host has a disk of its own: what it
// writes to /etc, /root, /usr/local and /var/lib lies in a folder of the test and
// is there again after a reboot; the rest of the machine it sees as it is. Another
// boot has another boot id, and knows nothing of the /run, the processes and the
// firewall rules of the one before.
//
// It needs root and Linux.
package hosttest

// Package enroll has the command hosts enroll: it collects the host keys of hosts, shows them to a
// person who vouches for them, and writes them into a known_hosts file. And it has the command
// clear, which drops what is remembered of a host.
//
// Floor 12: may import cli/reach and what is below.
package enroll

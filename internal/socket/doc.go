// Package socket listens on unix sockets and tells who is at their other end.
//
// A unix socket is the door for the users of one machine: its mode and its group say who may
// use it, and the kernel says who does ([PeerOf]), so no password is needed.
//
// [Listen] replaces the socket of a server that was killed, and never takes one away from a
// server that lives. Nobody can connect before the mode and the group are as they shall be.
//
// Floor 1: may import the standard library and internal/proc.
package socket

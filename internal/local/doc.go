// Package local knows the machine and the user that muster runs as, and the paths that
// follow from them. A client finds the socket of a server so, without any configuration.
//
// Floor 0: imports nothing of the house.
package local

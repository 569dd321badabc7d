// Package local knows the machine and the user that muster runs as, and the default paths for them.
// With it a client finds the socket of a server without any configuration.
//
// Floor 0: imports nothing of the house.
package local

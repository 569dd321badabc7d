package local

// Sockets are the paths where servers listen that nobody told otherwise, and where their clients
// look: first that of the user's own server, then that of the machine.
func Sockets() []string { return This().Sockets() }

package local

// Sockets returns the default paths on which servers listen and at which their clients look: first
// the user's own server, then the machine's.
func Sockets() []string { return This().Sockets() }

package settings

import "fmt"

// Sockets are the paths where servers listen that nobody told otherwise, and where their clients
// look: first that of the user's own server, then that of the machine.
func Sockets() []string { return thisMachine().sockets() }

// It is a folder beside node.dir, which is closed to the group of the socket.
func (m machine) sockets() []string {
	const system = "/run/muster-server/api.sock"
	switch {
	case m.service():
		return []string{system}
	case m.runtime != "":
		return []string{m.runtime + "/muster-server/api.sock", system}
	}
	return []string{fmt.Sprintf("/tmp/muster-server-%d/api.sock", m.uid), system}
}

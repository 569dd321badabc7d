package server

import (
	"net"
	"time"
)

// leaveTime is the time in which a server that stops still answers on open connections. A caller
// that uses one is told to make a new one, which the next server takes.
const leaveTime = 300 * time.Millisecond

// leave stops listening, and returns how many Serves have ended with it, each of which says so.
// Where systemd keeps the sockets open for the next server, callers go over to it: new connections
// wait there, and those in use are closed behind an answer. If they were closed at once, a request
// could be on its way.
func (s *Server) leave(list []net.Listener, ended <-chan error) int {
	if s.site.handed == nil {
		return 0
	}
	for _, l := range list {
		_ = l.Close() // Serve ends with it
		<-ended
	}
	<-time.After(leaveTime)
	return len(list)
}

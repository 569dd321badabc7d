package server

import (
	"net"
	"time"

	"muster/server/web"
)

const (
	// leaveTime is the time in which a server that stops still answers on open connections. A caller
	// that uses one is told to make a new one, which the next server takes.
	leaveTime = 300 * time.Millisecond
	// leaveMost bounds that time for callers in use, which have not sent their next request yet: on a
	// busy machine that takes long.
	leaveMost = 3 * time.Second
	leavePoll = 10 * time.Millisecond
)

// leave stops listening, and returns how many Serves have ended with it, each of which says so.
// Where systemd keeps the sockets open for the next server, callers go over to it: new connections
// wait there, and those in use are closed behind an answer. If they were closed at once, a request
// could be on its way. Connections by which nobody has asked for some seconds are not waited for.
func (s *Server) leave(list []net.Listener, ended <-chan error, used *web.Uses) int {
	if s.site.handed == nil {
		return 0
	}
	for _, l := range list {
		_ = l.Close() // Serve ends with it
		<-ended
	}
	begun := time.Now()
	for tick := time.NewTicker(leavePoll); ; {
		now := <-tick.C
		gone := now.Sub(begun)
		if gone >= leaveTime && (gone >= leaveMost || !used.Since(begun.Add(-leaveMost))) {
			tick.Stop()
			return len(list)
		}
	}
}

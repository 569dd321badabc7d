package server

import (
	"muster/server/dnssec"
	"muster/server/tasks"
)

// newDNSSEC gives the resource of keys of DNS zones what it works with.
func newDNSSEC(s *Server) dnssec.Routes {
	reads := readsOf(s.queue)
	find := tasks.Finder{Tasks: s.queue.Read.Tasks, Jobs: s.queue.Read.Jobs, History: s.history}
	return dnssec.Routes{Zones: s.queue.Conn, Tasks: s.queue.Read.Tasks, Reads: reads,
		Past: tasks.HistoryRoutes{Reads: reads, Find: find, Stock: s.stock, Log: s.log,
			Rights: s.site.tasks},
		Glance: s.site.tasks.Glance}
}

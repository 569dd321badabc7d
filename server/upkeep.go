package server

import (
	"context"

	"muster/server/apply"
	"muster/server/depth"
	"muster/server/entries"
	"muster/server/gitops"
	"muster/server/reach"
	"muster/server/schedules"
	"muster/server/traces"
)

// upkeep has what a server follows beside the inventory: entries that are kept as texts,
// branches of repositories, the depths of queues, and the traces of what has ended.
type upkeep struct {
	follower     *entries.Follower
	runbooks     *entries.Runbooks
	repositories *gitops.Follower
	depths       *depth.Book
	tracer       *traces.Tracer // nil: no traces are sent
}

// newApplies returns the routes of schedules, and those of applies, by which repositories come
// into force, too.
func newApplies(s *Server, submits submitRoutes, whole func(context.Context) error) (
	schedules.Resource, apply.Resource) {
	repeated := schedules.Resource{Book: s.queue.Hub.Schedules, Ticks: s.queue.Hub.Ticks, Log: s.log,
		Catalog: s.site.upkeep.runbooks.Catalog, Whole: whole, Submit: submits.submitFor,
		Refusals: submits.refusals, HostsOn: reach.Hosts{Look: s.look}.On,
		Owned: apply.Owners{Store: s.queue.Kept}.Owned}
	applied := apply.New(s.queue.Kept, repeated, s.calendar).With(textsOf(s))
	applied.Reserved = s.site.upkeep.repositories.Reserved
	s.site.upkeep.repositories.Applies = applied
	return repeated, applied
}

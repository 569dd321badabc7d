package schedules

import (
	"context"

	"muster/access"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/server/web"
)

// may reports whether a caller may do something with a schedule: on all hosts that its selector
// picks now in the whole house. A selector that picks none, or that has a mistake, leaves the
// schedule to those who may do it everywhere.
func (s Resource) may(ctx context.Context, q hub.Schedule, verb access.Verb) (bool, error) {
	v := web.ViewOf(ctx)
	if verb == access.See && v.All() || verb != access.See && v.May(access.Act{Verb: verb}) {
		return true, nil
	}
	hosts, err := s.HostsOn(ctx, q.On)
	return len(hosts) > 0 && v.May(access.Act{Verb: verb, Runbook: q.Runbook}, hosts...), err
}

// there returns an error if the caller does not see a schedule: then it is not there.
func (s Resource) there(ctx context.Context, q hub.Schedule) error {
	if seen, err := s.may(ctx, q, access.See); err != nil || seen {
		return err
	}
	return queue.ErrNotFound
}

// refuse returns the answer that refuses an act on a schedule that the caller sees; nil: the caller
// may.
func (s Resource) refuse(ctx context.Context, q hub.Schedule, verb access.Verb) error {
	if may, err := s.may(ctx, q, verb); err != nil || may {
		return web.Problem(err)
	}
	hosts, err := s.HostsOn(ctx, q.On)
	if err == nil && len(hosts) == 0 {
		return web.ViewOf(ctx).RefuseHouse(access.Act{Verb: verb})
	}
	if err == nil {
		err = web.ViewOf(ctx).Refuse(access.Act{Verb: verb, Runbook: q.Runbook}, hosts)
	}
	return web.Problem(err)
}

package tasks

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/server/web"
)

// A limited client sees a part of the house: limited has its place in the events of the zones of
// its hosts. The id of an event has the place of the last event that was told, and not of the last
// one that was read: that would tell when something happened to somebody else.
type limited struct {
	view *web.View
	near map[string]bool // zones
	told positions       // nil: the client sees everything
}

// beforeStart is the time before the start of a stream from which a client gets the events again if
// it returns before anything was told. The clock of Redis may differ from the server's by so much.
const beforeStart = time.Minute

// near returns those of the zones whose events a client may see, and gives it a place there.
func (s *Streams) near(ctx context.Context, st *stream, zones []string) []string {
	v, p := web.ViewOf(ctx), &st.part
	if v.All() {
		*p = limited{}
		return zones
	}
	if p.view != v {
		p.view, p.near = v, s.Near(v)
	}
	zones = slices.DeleteFunc(zones, func(zone string) bool {
		return !p.near[zone] && zone != keys.HubZone
	})
	if p.told != nil {
		return zones
	}
	p.told = positions{}
	if st.at != nil {
		maps.Copy(p.told, st.at)
	}
	maps.DeleteFunc(p.told, func(zone, _ string) bool { return !slices.Contains(zones, zone) })
	for _, zone := range zones {
		if st.at == nil {
			p.told[zone] = fmt.Sprintf("%d-0", s.Now().Add(-beforeStart).UnixMilli())
		}
	}
	return zones
}

// tell notes that an event is told, if its whole entry was read.
func (p *limited) tell(at positions, h jobs.Happening) {
	if p.told != nil && at[h.Zone] == h.ID {
		p.told[h.Zone] = h.ID
	}
}

// place returns the id of an event that is told now.
func (st *stream) place() positions {
	if st.part.told != nil {
		return st.part.told
	}
	return st.at
}

// sees returns the function that reports whether a client sees an event of a page: one of a task or
// a job that it sees. All others concern the whole house.
func (s *Streams) sees(ctx context.Context) func(h jobs.Happening) (bool, error) {
	if web.ViewOf(ctx).All() {
		return func(jobs.Happening) (bool, error) { return true, nil }
	}
	sees := s.Rights.Glance()
	return func(h jobs.Happening) (bool, error) { return seesEvent(ctx, sees, h) }
}

// seesEvent reports whether a caller who does not see everything sees an event.
func seesEvent(ctx context.Context, sees func(context.Context, jobs.TaskID, string) (bool, error),
	h jobs.Happening) (bool, error) {
	if id, err := jobs.ParseTaskID(h.Object); err == nil {
		return sees(ctx, id, "")
	}
	id, err := jobs.ParseID(h.Object)
	if err != nil {
		return false, nil
	}
	return sees(ctx, id.Task(), id.Host())
}

// troubleFor returns the words of an error for a client: they may name zones of others.
func troubleFor(ctx context.Context, err error) string {
	if web.ViewOf(ctx).All() {
		return err.Error()
	}
	return "the server cannot read the events at the moment"
}

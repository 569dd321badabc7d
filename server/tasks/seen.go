package tasks

import (
	"context"

	"muster/api"
	"muster/history"
	"muster/history/part"
	"muster/jobs"
	"muster/server/web"
)

// Rights says which tasks and jobs a caller sees.
type Rights interface {
	// Sees reports whether the caller of a context sees a task or, with a host, its job there.
	Sees(ctx context.Context, id jobs.TaskID, host string) (bool, error)

	// Glance returns Sees for one look at many: it reads each task once.
	Glance() func(ctx context.Context, id jobs.TaskID, host string) (bool, error)
}

// seen returns the parts of the house whose history the caller sees; nil: all.
func (s HistoryRoutes) seen(ctx context.Context) []part.Part {
	v := web.ViewOf(ctx)
	if v.All() {
		return nil
	}
	parts, now := []part.Part{}, s.Stock.Now()
	for _, r := range v.Reaches() {
		p := part.Part{Runbooks: r.Runbooks}
		if !r.Hosts.All() {
			p.Hosts = map[string]string{}
			for name := range r.Hosts.Names() {
				if now == nil {
					break
				}
				if h, known := now.Host(name); known {
					p.Hosts[name] = h.Customer
				}
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// page reads a page of history as the caller sees it. The selector and the reason of a task may
// name hosts that the caller does not see: only tasks that are seen whole have them.
func (s HistoryRoutes) page(ctx context.Context, f history.Filter, cursor string, most int) (
	list []api.PastJob, next string, err error) {
	f.Seen = s.seen(ctx)
	list, next, err = s.Find.History.Jobs(ctx, f, cursor, most)
	if err != nil || f.Seen == nil {
		return list, next, err
	}
	sees := s.Rights.Glance()
	for i, j := range list {
		whole, err := sees(ctx, j.ID.Task(), "")
		if err != nil {
			return nil, "", err
		}
		if !whole && j.Asked != nil {
			some := *j.Asked
			some.On, some.Reason = "", ""
			list[i].Asked = &some
		}
	}
	return list, next, nil
}

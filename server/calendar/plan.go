package calendar

import (
	"context"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/jobs/queue/hub"
	"muster/server/fault"
	"muster/server/web"
	"muster/windows"
)

// A Planned is a timetable that an apply of several kinds brings into force.
type Planned struct {
	Next    windows.Timetable
	Changed api.WindowsChanged
}

// Plan works out what becomes of a timetable as it was read, with its book. Nothing is changed.
func (c *Calendar) Plan(ctx context.Context, t windows.Timetable, book *windows.Book,
	a windows.Application) (Planned, error) {
	if err := c.proven(ctx, manner{}); err != nil {
		return Planned{}, err
	}
	next, _, err := t.Apply(a)
	if err != nil {
		return Planned{}, web.Refusal(web.Mistakes("body.files", err))
	}
	next, then, err := next.Settle(book, c.Now().UTC().Truncate(time.Second))
	if err != nil {
		return Planned{}, web.Refusal(web.Mistakes("body.files", err))
	}
	out := api.WindowsChanged{Version: t.Version, Change: book.Compare(then)}
	out.Notes = c.doubts(book, then, out.Change)
	return Planned{next, out}, nil
}

// Prepare returns the change that brings a planned timetable into force.
func (c *Calendar) Prepare(p Planned, g web.Giver) (hub.Prepared, error) {
	e := event("windows-applied", "windows", g)
	e.Detail["void"] = p.Changed.Void
	change, err := c.Times.PrepareTimetable(p.Next, e)
	done := change.Done
	change.Done = func() {
		c.forget() // somebody may put the one before back, under its own mark
		if done != nil {
			done()
		}
	}
	return change, err
}

// Owned says why some entries must not be changed here: they come from elsewhere. nil: none does.
type Owned func(ctx context.Context, kind string, names ...string) ([]string, error)

// refuse refuses a change of entries that come from elsewhere.
func (f Owned) refuse(ctx context.Context, c windows.Change) error {
	names := map[string][]string{}
	for _, entry := range slices.Concat(c.Changed, c.Removed) {
		kind, name, _ := strings.Cut(entry, " ")
		names[kind] = append(names[kind], name)
	}
	if f == nil {
		return nil
	}
	var all []string
	for _, kind := range []string{"window", "freeze"} {
		if len(names[kind]) == 0 {
			continue
		}
		why, err := f(ctx, kind, names[kind]...)
		if err != nil {
			return web.Problem(err)
		}
		all = append(all, why...)
	}
	if len(all) > 0 {
		return web.Problem(fault.Contradict(strings.Join(all, "; ")))
	}
	return nil
}

package intake

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/server/draft"
	"muster/server/fault"
	"muster/windows"
)

// Estimates reads how long runbooks take.
type Estimates interface {
	Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate, error)
}

// Nodes lists the nodes.
type Nodes interface {
	Nodes(ctx context.Context) ([]jobs.Node, error)
}

// Openings finds the windows in which the jobs of drafts begin.
type Openings struct {
	Book      func(context.Context) (*windows.Book, error)
	Estimates Estimates
	Nodes     Nodes
	Now       func() time.Time
}

// An answer names at most so many openings.
const openingsShown = 60

// Appoint gives each host of a draft the first opening in which its job may begin, or
// reports the hosts that have none. offset says how much later a host begins than the
// others; nil: all at once. An error comes from Redis.
func (o *Openings) Appoint(ctx context.Context, p *draft.Draft, how api.Timed,
	offset func(host string) time.Duration) ([]error, error) {
	spec := &p.Task.Spec
	spec.After = p.Task.At
	book, err := o.Book(ctx)
	if err != nil {
		return nil, err
	}
	if !spec.Window && offset == nil && len(book.Agreed().Freezes) == 0 {
		return nil, nil
	}
	seats, unknown, err := o.seats(ctx, p, offset)
	if err != nil {
		return nil, err
	}
	if wrong := nobodyKnows(*spec, unknown, len(seats)); wrong != nil {
		return wrong, nil
	}
	var slots map[string]int
	if spec.Window {
		if slots, err = o.Slots(ctx); err != nil {
			return nil, err
		}
	}
	fits := book.Fit(seats, windows.Work{Runbook: spec.Runbook, Window: spec.Window,
		Reserve: spec.Reserve, Override: spec.Override}, slots)
	if spec.Window {
		if wrong := leaveClosed(p, seats, fits, how.SkipClosed); len(wrong) > 0 {
			return wrong, nil
		}
		p.Windows = windowPlan(p, seats, fits)
		for zone := range p.Hosts {
			p.Windows.Slots += slots[zone]
		}
	}
	if !spec.Window {
		p.Held = append(p.Held, held(book, seats, fits, spec.Override)...)
	}
	p.Task.Own = map[string]jobs.Micros{}
	for i, seat := range seats {
		// A job that may begin now begins with the others: it takes its turn in the queue.
		if due := fits[i].Due; due.After(o.Now()) && due.After(p.Task.At.Time()) {
			p.Task.Own[seat.Host] = jobs.MicrosOf(due)
		}
	}
	return nil, nil
}

// SkipClosed leaves out the hosts of a draft for which no opening is known, as a submit does.
func (o *Openings) SkipClosed(ctx context.Context, p *draft.Draft) ([]error, error) {
	if !p.Task.Spec.Window {
		return nil, nil
	}
	p.Task.Spec.After = p.Task.At
	book, err := o.Book(ctx)
	if err != nil {
		return nil, err
	}
	seats, _, err := o.seats(ctx, p, nil)
	if err != nil {
		return nil, err
	}
	slots, err := o.Slots(ctx)
	if err != nil {
		return nil, err
	}
	fits := book.Fit(seats, windows.Work{Runbook: p.Task.Spec.Runbook, Window: true,
		Reserve: p.Task.Spec.Reserve, Override: p.Task.Spec.Override}, slots)
	return leaveClosed(p, seats, fits, true), nil
}

// nobodyKnows refuses work in a window of which nothing says how long it takes.
func nobodyKnows(spec jobs.Spec, hosts []string, of int) []error {
	if !spec.Window || !spec.Unsaid || len(hosts) == 0 {
		return nil
	}
	return []error{fault.At("body.expect", "nobody knows how long %s takes with these arguments on "+
		"%d of %d hosts: %s: no success of it there is known, and the runbook has no `expect`; so "+
		"nobody knows whether it fits into a window: say how long it takes with --expect, as in "+
		"--expect 5m (of a schedule: `expect: 5m`)",
		spec.Runbook, len(hosts), of, wording.ClipList(fleet.Fold(hosts)))}
}

// seats returns the hosts of a draft with what the book asks about them, and the hosts on which
// the same work never succeeded.
func (o *Openings) seats(ctx context.Context, p *draft.Draft, offset func(string) time.Duration) (
	seats []windows.Seat, unknown []string, err error) {
	spec := p.Task.Spec
	seats = make([]windows.Seat, len(p.Picked))
	known, err := o.usual(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	from := o.Now()
	if at := p.Task.At.Time(); at.After(from) {
		from = at
	}
	for i, h := range p.Picked {
		usual := known[kindOf(h)]
		if usual == 0 {
			unknown = append(unknown, h.Name)
		}
		takes := cmp.Or(usual, spec.Expect)
		seats[i] = windows.Seat{Place: jobs.Place(h), Zone: h.Zone, From: from, Takes: takes}
		if spec.Disruptive {
			seats[i].Group = h.Group
		}
		if offset != nil {
			// A late job begins at once.
			if at := spec.Tick.Add(offset(h.Name)); at.After(from) {
				seats[i].From = at
			}
		}
	}
	return seats, unknown, nil
}

// A kind has hosts that have an estimate in common.
type kind struct{ model, customer string }

func kindOf(h fleet.Host) kind { return kind{h.Labels["model"], h.Customer} }

// usual returns how long the work of a draft takes on each kind of its hosts, as far as that is
// known; nothing if the work needs no window.
func (o *Openings) usual(ctx context.Context, p *draft.Draft) (map[kind]time.Duration, error) {
	if !p.Task.Spec.Window {
		return nil, nil
	}
	fields := map[kind]string{}
	for _, h := range p.Picked {
		if k := kindOf(h); fields[k] == "" {
			fields[k] = jobs.EstimateField(p.Task.Spec.Work(), h)
		}
	}
	estimates, err := o.Estimates.Estimates(ctx, slices.Collect(maps.Values(fields)))
	known := map[kind]time.Duration{}
	for k, field := range fields {
		if e := estimates[field].P90; e > 0 {
			known[k] = e
		}
	}
	return known, err
}

// Slots returns how many jobs the nodes of each zone do at a time.
func (o *Openings) Slots(ctx context.Context) (map[string]int, error) {
	nodes, err := o.Nodes.Nodes(ctx)
	slots := map[string]int{}
	for _, n := range nodes {
		if n.State == nodeRunning {
			for _, zone := range n.Zones {
				slots[zone] += n.Limit * n.Slots
			}
		}
	}
	return slots, err
}

// nodeRunning is the state of a node that takes jobs.
const nodeRunning = "running"

// leaveClosed takes the hosts out of a draft for which no opening is known, or reports
// them if that was not asked for.
func leaveClosed(p *draft.Draft, seats []windows.Seat, fits []windows.Fitting, skip bool) []error {
	closed, open := map[string][]string{}, []fleet.Host{}
	var names []string
	for i, f := range fits {
		if f.Due.IsZero() {
			closed[f.Why] = append(closed[f.Why], seats[i].Host)
			names = append(names, seats[i].Host)
			continue
		}
		open = append(open, p.Picked[i])
	}
	if skip && len(open) > 0 {
		p.LeftOut.Closed = fleet.Fold(names)
		if len(names) > 0 {
			p.Keep(open)
		}
		return nil
	}
	var wrong []error
	for _, why := range slices.Sorted(maps.Keys(closed)) {
		hint := "; leave them out with skip_closed"
		if len(open) == 0 {
			hint = ""
		}
		wrong = append(wrong, fault.At("body.on", "no approved window for %d of %d hosts: %s: %s%s",
			len(closed[why]), len(seats), wording.ClipList(fleet.Fold(closed[why])), why, hint))
	}
	return wrong
}

// windowPlan lists which hosts have a turn in which opening.
func windowPlan(p *draft.Draft, seats []windows.Seat, fits []windows.Fitting) *api.WindowPlan {
	out := &api.WindowPlan{Reserve: p.Task.Spec.Reserve.Seconds(), Openings: []api.PlannedOpening{}}
	type key struct{ start, end time.Time }
	turns, names := map[key][]string{}, map[key][]string{}
	var later []string
	for i, f := range fits {
		if f.Due.IsZero() {
			continue
		}
		out.Seconds = max(out.Seconds, seats[i].Takes.Seconds())
		if f.Start.IsZero() {
			later = append(later, seats[i].Host)
			continue
		}
		k := key{f.In.Start, f.In.End}
		turns[k] = append(turns[k], seats[i].Host)
		for _, w := range f.In.Windows {
			if !slices.Contains(names[k], w) {
				names[k] = append(names[k], w)
			}
		}
	}
	byTime := func(a, b key) int { return cmp.Or(a.start.Compare(b.start), a.end.Compare(b.end)) }
	for n, k := range slices.SortedFunc(maps.Keys(turns), byTime) {
		if n >= openingsShown {
			later = append(later, turns[k]...)
			continue
		}
		out.Openings = append(out.Openings, api.PlannedOpening{Windows: names[k],
			Start: jobs.Time{Time: k.start}, End: jobs.Time{Time: k.end}, Count: len(turns[k]),
			Hosts: fleet.Fold(turns[k])})
	}
	out.Later = fleet.Fold(later)
	return out
}

// held says which hosts are frozen when it would be their time, by what, and until when.
func held(book *windows.Book, seats []windows.Seat, fits []windows.Fitting,
	override string) []string {
	hosts := map[string][]string{}
	for i, seat := range seats {
		if !fits[i].Due.IsZero() && !fits[i].Due.After(seat.From) {
			continue
		}
		why := book.Admit(seat.Place, seat.From, windows.Work{Override: override}).Why
		hosts[why] = append(hosts[why], seat.Host)
	}
	var lines []string
	for _, why := range slices.Sorted(maps.Keys(hosts)) {
		lines = append(lines, fmt.Sprintf("%s: %s", fleet.Fold(hosts[why]), why))
	}
	return lines
}

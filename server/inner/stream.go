package inner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"muster/events/inner"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/read"
)

// The bounds of one step.
const (
	pageMax  = 1000 // entries of a stream that are read at once
	stepMax  = 50   // events, after which a step ends
	stepSize = 1 << 20
)

// streamPlace begins the names of the places in streams: the last entry, and how many entries the
// stream had in all by then; −1: that is not known.
const streamPlace = "stream:"

type place struct {
	last    string
	entries int64
}

func (p place) String() string { return p.last + " " + strconv.FormatInt(p.entries, 10) }

func placeOf(text string) (p place) {
	last, n, _ := strings.Cut(text, " ")
	p.last, p.entries = last, -1
	if many, err := strconv.ParseInt(n, 10, 64); err == nil {
		p.entries = many
	}
	return p
}

// stream tells the events of a zone.
func (f *Feeder) stream(ctx context.Context, zone string, wants func(string) bool) error {
	name := streamPlace + zone
	for {
		text, known := f.places.At[name]
		at := placeOf(text)
		if !known {
			at = place{"0-0", 0}
		}
		page, err := f.Streams.EventPage(ctx, zone, at.last, pageMax)
		if err != nil {
			return err
		}
		begun := f.places.At[begunPlace] != ""
		end := place{page.Stream.Last, page.Stream.Added}
		if page.Stream.Last == "" {
			end = place{"0-0", 0}
		}
		if !known && !begun || !f.any(wants, inner.OfWork()) {
			// Nothing is told that happened before somebody waited for it.
			return f.step(ctx, map[string]string{name: end.String()}, nil)
		}
		if why := at.lost(page); why != "" {
			f.Log.Error("some of muster's own events are lost: their entries were gone before triggers "+
				"had them", "zone", zone, "after", at.last, "first", page.Stream.First, "why", why)
		}
		if entryLess(end.last, at.last) {
			return f.step(ctx, map[string]string{name: end.String()}, nil)
		}
		if page.Entries == 0 {
			return nil
		}
		to, list, err := f.page(ctx, page, at, wants)
		if err != nil {
			return err
		}
		if err := f.step(ctx, map[string]string{name: to.String()}, list); err != nil {
			return err
		}
	}
}

// lost says why entries behind a place are gone; empty: none are.
func (p place) lost(page read.EventPage) string {
	s := page.Stream
	switch {
	case s.Last == "" && p.last != "0-0", entryLess(s.Last, p.last):
		return "Redis has forgotten what it had"
	case !entryLess(p.last, s.First) || s.Added < 0 || p.entries < 0:
		return ""
	case s.Added-s.Length > p.entries:
		return fmt.Sprintf("the stream was trimmed by %d entries", s.Added-s.Length-p.entries)
	}
	return ""
}

// entryLess compares ids of entries.
func entryLess(a, b string) bool {
	var am, as, bm, bs uint64
	_, _ = fmt.Sscanf(a, "%d-%d", &am, &as) // what is missing is 0
	_, _ = fmt.Sscanf(b, "%d-%d", &bm, &bs)
	return am < bm || am == bm && as < bs
}

// page makes events of the first entries of a page, as many as fit into a step, and returns the
// place behind them. An entry is told whole.
func (f *Feeder) page(ctx context.Context, p read.EventPage, at place, wants func(string) bool) (
	to place, list []inner.Told, err error) {
	size, groups := 0, entries(p.Events)
	for i, entry := range groups {
		more, err := f.entry(ctx, entry, wants)
		if err != nil {
			return at, nil, err
		}
		for _, e := range more {
			size += len(e.Body)
		}
		list = append(list, more...)
		if i+1 < len(groups) && (len(list) >= stepMax || size >= stepSize) {
			return place{entry[0].ID, -1}, list, nil // entries without events were not counted
		}
	}
	to = place{p.Last, -1}
	switch {
	case p.Last == p.Stream.Last:
		to.entries = p.Stream.Added
	case at.entries >= 0:
		to.entries = at.entries + p.Entries
	}
	return to, list, nil
}

// entries groups the events of a stream by their entries.
func entries(list []jobs.Happening) (out [][]jobs.Happening) {
	for _, h := range list {
		if n := len(out); n > 0 && out[n-1][0].ID == h.ID {
			out[n-1] = append(out[n-1], h)
			continue
		}
		out = append(out, []jobs.Happening{h})
	}
	return out
}

// entry makes events of what one call of a script did.
func (f *Feeder) entry(ctx context.Context, list []jobs.Happening, wants func(string) bool) (
	out []inner.Told, err error) {
	var expired []jobs.Happening
	for _, h := range list {
		var more []inner.Told
		switch {
		case h.Event == "task" && wants(inner.TaskEnded):
			more, err = f.ended(ctx, jobs.TaskID(h.Object))
		case h.Event == "freeze-group" && wants(inner.GroupFrozen):
			more, err = f.frozen(ctx, h)
		case inner.Expired(h) && wants(inner.WindowMissed):
			expired = append(expired, h)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	missed, err := f.missed(ctx, expired)
	return append(out, missed...), err
}

// ended returns the event of a task that has ended, in its last zone.
func (f *Feeder) ended(ctx context.Context, id jobs.TaskID) ([]inner.Told, error) {
	t, err := f.Tasks.Task(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		f.Log.Warn("the end of a task is not told: Redis has forgotten the task", "task", id)
		return nil, nil
	}
	if err != nil || t.State != jobs.TaskEnded {
		return nil, err // another zone tells of it later
	}
	var all []jobs.JobInfo
	err = f.Jobs.EachJob(ctx, id, 0, pageMax, func(chunk []jobs.JobInfo) error {
		all = append(all, chunk...)
		return nil
	})
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return nil, err
	}
	return []inner.Told{inner.OfTask(t, all, f.find)}, nil
}

// frozen returns the event of a redundancy group that was frozen.
func (f *Feeder) frozen(ctx context.Context, h jobs.Happening) ([]inner.Told, error) {
	t, err := f.Tasks.Task(ctx, inner.JobOf(h).Task())
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return nil, err
	}
	members := inner.Members(f.stock.hosts, h.Zone, h.Object)
	return []inner.Told{inner.OfGroup(h, t, members, f.find)}, nil
}

// missed returns the events of jobs that have expired in one entry.
func (f *Feeder) missed(ctx context.Context, list []jobs.Happening) (out []inner.Told, err error) {
	for len(list) > 0 {
		h := list[0]
		id := jobs.ID(h.Object).Task()
		var ids []jobs.ID
		list = slices.DeleteFunc(list, func(h jobs.Happening) bool {
			mine := jobs.ID(h.Object).Task() == id
			if mine {
				ids = append(ids, jobs.ID(h.Object))
			}
			return mine
		})
		found, err := f.Jobs.JobsIn(ctx, h.Zone, ids)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return nil, err
		}
		t, err := f.Tasks.Task(ctx, id)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return nil, err
		}
		t.Task = id
		out = append(out, inner.OfMissed(h, t, found, f.find)...)
	}
	return out, nil
}

package calendar

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// windowInfo shows a window, with its next occurrence.
func windowInfo(now time.Time, book *windows.Book, w windows.Window) api.WindowInfo {
	info := api.WindowInfo{Name: w.Name, For: w.Whose(), Zone: w.Zone.String(), Starts: []string{},
		WindowSpan: api.WindowSpan{Cutoff: w.Cutoff.String()}, Runbooks: slices.Clone(w.Runbooks),
		AtEnd: string(w.AtEnd), OnChange: string(w.OnChange), Approval: "none", Hash: w.Hash()}
	for _, r := range w.Times.Recurrences {
		info.Starts = append(info.Starts, r.String())
	}
	for _, d := range w.Times.Dates {
		info.Starts = append(info.Starts, d.String())
	}
	for _, e := range w.Times.Events {
		times := fmt.Sprintf("%d times", len(e.Starts)+len(e.Instants))
		if len(e.Rules) > 0 {
			times = "again and again"
		}
		info.Starts = append(info.Starts, fmt.Sprintf("event %s (%s)",
			cmp.Or(web.Clip(e.Summary), "without a name"), times))
	}
	switch {
	case w.Length > 0:
		info.Length = w.Length.String()
	case w.End > 0:
		info.End = fmt.Sprintf("%02d:%02d", int(w.End.Hours()), int(w.End.Minutes())%60)
	}
	if w.From != 0 {
		info.From = w.From.String()
	}
	if w.Until != 0 {
		info.Until = w.Until.String()
	}
	for _, d := range w.Times.Except {
		info.Except = append(info.Except, d.String())
	}
	if w.Approval {
		info.Approval = "required"
	}
	if info.Runbooks == nil {
		info.Runbooks = []string{}
	}
	for o := range book.Occurrences(w.Name, now) {
		next := describeOccurrence(w, o)
		info.Next = &next
		break
	}
	return info
}

func describeOccurrence(w windows.Window, o windows.Approved) api.Occurrence {
	return api.Occurrence{
		Window:     o.Window,
		Start:      jobs.Time{Time: o.Start},
		End:        jobs.Time{Time: o.End},
		Cutoff:     jobs.Time{Time: o.Cutoff},
		LocalStart: local(w.Zone, o.Start),
		LocalEnd:   local(w.Zone, o.End),
		Zone:       w.Zone.String(),
		Approved:   o.OK,
		Approval:   o.Approval,
		Seconds:    o.End.Sub(o.Start).Seconds(),
	}
}

// local is an instant as people at the window's place read it, with the offset: of
// two equal readings of a night it tells which.
func local(z windows.Zone, t time.Time) string {
	return t.In(z.Location(t)).Format("Mon 2006-01-02 15:04:05 -07:00")
}

// doubts are about what was added or changed, and is as good as nothing: a freeze of a
// customer whose name was mistyped lets work begin on all of its hosts.
func (c *Calendar) doubts(before, book *windows.Book, is windows.Change) []string {
	out := []string{}
	names := append(slices.Clone(is.Added), is.Changed...)
	for _, name := range names {
		for _, why := range book.Agreed().Doubts[name] {
			out = append(out, name+": "+why)
		}
	}
	there := scopesOf(c.Stock)
	for _, w := range book.Agreed().Windows {
		if !slices.Contains(names, "window "+w.Name) {
			continue
		}
		if there != nil && !there[w.For] {
			out = append(out, fmt.Sprintf("window %s is for %s, and no host of the inventory is of it",
				w.Name, w.For))
		}
		out = append(out, shared(c.Stock, w)...)
		for _, why := range w.Surprises(c.Now()) {
			out = append(out, fmt.Sprintf("window %s: %s", w.Name, why))
		}
		if _, ok := firstOf(w.Occurrences(c.Now())); !ok {
			out = append(out, fmt.Sprintf("window %s is over: it is not open again", w.Name))
		}
		for _, name := range w.Runbooks {
			if _, err := c.Catalog().Lookup(name); err != nil {
				out = append(out, fmt.Sprintf("window %s: %v", w.Name, err))
			}
		}
	}
	for _, f := range book.Agreed().Freezes {
		if !slices.Contains(names, "freeze "+f.Name) {
			continue
		}
		if over(f, c.Now()) {
			out = append(out, fmt.Sprintf("freeze %s is over: it freezes nothing any more", f.Name))
		}
		if there != nil && !there[f.For] {
			out = append(out, fmt.Sprintf("freeze %s is for %s, and no host of the inventory is of it: "+
				"it freezes nothing", f.Name, f.For))
		}
	}
	return out
}

// scopesOf returns the scopes of all hosts of the inventory; nil: there is no inventory.
func scopesOf(hosts *stock.Store) map[windows.Scope]bool {
	st, err := hosts.Get()
	if err != nil {
		return nil
	}
	all := map[windows.Scope]bool{}
	for _, h := range st.Hosts() {
		for scope := range jobs.Place(h).Scopes() {
			all[scope] = true
		}
	}
	return all
}

func firstOf[T any](seq iter.Seq[T]) (v T, ok bool) {
	for v := range seq {
		return v, true
	}
	return v, false
}

// over reports whether a freeze does not hold again.
func over(f windows.Freeze, now time.Time) bool {
	from, until := f.Next(now)
	return from.IsZero() && until.IsZero()
}

// describeFreeze shows a freeze; who ordered it is in the timetable.
func describeFreeze(now time.Time, table windows.Timetable, f windows.Freeze) api.FreezeInfo {
	info := api.FreezeInfo{Name: f.Name, For: f.Whose(), Reason: f.Reason}
	from, until := f.Span()
	if len(f.Events) > 0 {
		from, until = f.Next(now)
	}
	info.From, info.Until = jobs.Time{Time: from}, jobs.Time{Time: until}
	info.Active, info.Over = f.Holds(now), over(f, now)
	for _, o := range table.Freezes {
		if o.Name == f.Name {
			info.Ordered = o.By
		}
	}
	return info
}

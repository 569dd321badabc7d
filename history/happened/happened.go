package happened

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/history"
	"muster/history/part"
	"muster/jobs"
)

// A Filter picks events; an empty field picks all.
type Filter struct {
	Task  jobs.TaskID // events of it and its jobs
	Host  string      // events of jobs on it
	Zone  string
	Who   string    // who gave the order
	Kinds []string  // names of events
	From  time.Time // that happened then or later
	To    time.Time // that happened before it

	// Of leaves events of jobs on other hosts out, and those that belong to no task; nil: none.
	Of []string
}

// A place is one in the order of events. Events of one entry have no order of their own, and no
// key: an entry holds the events of one call, so those before are counted.
type place struct {
	at          int64
	zone, entry string
	skip        int // events of the entry up to this one
}

// String returns the cursor.
func (p place) String() string { return fmt.Sprintf("%d.%s.%s.%d", p.at, p.entry, p.zone, p.skip) }

func parse(cursor string) (p place, err error) {
	at, rest, _ := strings.Cut(cursor, ".")
	entry, rest, _ := strings.Cut(rest, ".")
	last := strings.LastIndexByte(rest, '.')
	if last < 0 {
		return p, fmt.Errorf("cursor: %w", history.ErrCursor)
	}
	n, wrong := strconv.ParseInt(at, 10, 64)
	skip, bad := strconv.Atoi(rest[last+1:])
	if wrong != nil || bad != nil || skip < 0 {
		return p, fmt.Errorf("cursor: %w", history.ErrCursor)
	}
	return place{n, rest[:last], entry, skip}, nil
}

// An Event is one of the past, with the cursor of those behind it.
type Event struct {
	api.PastEvent
	Cursor string
}

// List returns events, the first one first, from a cursor on; more reports whether others follow.
func List(ctx context.Context, s *history.Store, f Filter, cursor string, most int) (list []Event,
	more bool, err error) {
	h := history.HandleOf(s)
	w := f.where(h.SQLite())
	last := place{}
	if cursor != "" {
		if last, err = parse(cursor); err != nil {
			return nil, false, err
		}
		w.And("(at, zone, entry) >= (?, ?, ?)", last.at, last.zone, last.entry)
	}
	most = min(max(most, 1), api.PageMax)
	text := fmt.Sprintf("select zone, entry, at, event, object, detail, coalesce(who, '') from "+
		"events %s order by at, zone, entry, object, event, detail limit %d offset %d", w.Text(), most+1,
		last.skip)
	err = h.Rows(ctx, "events", text, w.Args, func(scan func(...any) error) error {
		var e Event
		var at int64
		var detail string
		if err := scan(&e.Zone, &e.ID, &at, &e.Event, &e.Object, &detail, &e.Who); err != nil {
			return err
		}
		e.At = jobs.TimeOf(jobs.Micros(at))
		if strings.TrimSpace(detail) != "" {
			e.Detail = json.RawMessage(detail)
		}
		if at != last.at || e.Zone != last.zone || e.ID != last.entry {
			last = place{at: at, zone: e.Zone, entry: e.ID}
		}
		last.skip++
		e.Cursor = last.String()
		list = append(list, e)
		return nil
	})
	if len(list) > most {
		return list[:most], true, err
	}
	return list, false, err
}

// IsUnsaid reports whether some events of the time of a filter were stored by a muster that did not
// note who gave the order.
func IsUnsaid(ctx context.Context, s *history.Store, f Filter) (unsaid bool, err error) {
	w := Filter{From: f.From, To: f.To, Task: f.Task}.where(false)
	w.And("who is null")
	err = history.HandleOf(s).Rows(ctx, "events", "select 1 from events "+w.Text()+" limit 1", w.Args,
		func(func(...any) error) error {
			unsaid = true
			return nil
		})
	return unsaid, err
}

// hostOf is the host in the id of a job.
const hostOf = "substr(object, length(task) + 2)"

func (f Filter) where(sqlite bool) *part.Where {
	w := &part.Where{}
	for _, t := range []struct{ term, value string }{{"task = ?", string(f.Task)},
		{"who = ?", f.Who}, {"zone = ?", f.Zone}, {hostOf + " = ?", f.Host}} {
		if t.value != "" {
			w.And(t.term, t.value)
		}
	}
	if f.Who != "" {
		w.And("who <> ''") // allows its index
	}
	if f.Host != "" {
		w.And("task <> ''")
	}
	if len(f.Kinds) > 0 {
		values := make([]any, len(f.Kinds))
		for i, kind := range f.Kinds {
			values[i] = kind
		}
		w.And("event in (?"+strings.Repeat(", ?", len(values)-1)+")", values...)
	}
	if !f.From.IsZero() {
		w.And("at >= ?", int64(jobs.MicrosOf(f.From)))
	}
	if !f.To.IsZero() {
		w.And("at < ?", int64(jobs.MicrosOf(f.To)))
	}
	if f.Of != nil {
		among, value := "= any(string_to_array(?, chr(31)))", strings.Join(f.Of, "\x1f")
		if sqlite {
			text, _ := json.Marshal(f.Of) // texts: no error is possible
			among, value = "in (select value from json_each(?))", string(text)
		}
		w.And("task <> '' and (object = task or "+hostOf+" "+among+")", value)
	}
	return w
}

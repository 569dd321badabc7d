package calendar

import (
	"context"
	"maps"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server/web"
	"muster/windows"
)

type (
	spansInput struct {
		From     time.Time `query:"from" doc:"now if not given"`
		Until    time.Time `query:"until" doc:"a week after from if not given"`
		Customer string    `query:"customer" doc:"only what concerns this customer's hosts"`
	}
	spansOutput struct{ Body api.Calendar }
)

// The bounds of a calendar.
const (
	spanUsual   = 7 * 24 * time.Hour
	spanMax     = 400 * 24 * time.Hour
	openingsMax = 5000
)

// spans answers GET /v1/calendar.
func (s Windows) spans(ctx context.Context, in *spansInput) (*spansOutput, error) {
	from, until := in.From, in.Until
	if from.IsZero() {
		from = s.Now().UTC().Truncate(time.Second)
	}
	if until.IsZero() {
		until = from.Add(spanUsual)
	}
	if !until.After(from) || until.Sub(from) > spanMax {
		return nil, web.Refusal([]error{web.Mistake("query.until",
			"want a time after from, and at most %d days after it", int(spanMax.Hours()/24))})
	}
	see := s.sightOf(ctx)
	table, book, err := s.read(ctx, see)
	if err != nil {
		return nil, err
	}
	d := drawing{book: book, table: table, from: from, until: until, only: in.Customer,
		there: map[windows.Scope]map[string]windows.Place{}}
	if st, err := s.Stock.Get(); err == nil {
		v := web.ViewOf(ctx)
		for _, h := range st.Hosts() {
			if v.Sees(h.Name) {
				d.at(jobs.Place(h))
			}
		}
	}
	d.draw(see)
	return &spansOutput{d.calendar()}, nil
}

// A drawing is a calendar while it is made.
type drawing struct {
	book        *windows.Book
	table       windows.Timetable
	from, until time.Time
	only        string // a customer; empty: all
	// there has the customers who have hosts of a scope, each with the place of one of them.
	there    map[windows.Scope]map[string]windows.Place
	openings []api.CalendarOpening
	freezes  []api.CalendarFreeze
	more     bool
}

// at notes the place of a host.
func (d *drawing) at(p windows.Place) {
	for scope := range p.Scopes() {
		if d.there[scope] == nil {
			d.there[scope] = map[string]windows.Place{}
		}
		if _, known := d.there[scope][p.Customer]; !known {
			d.there[scope][p.Customer] = p
		}
	}
}

// draw adds the windows and freezes that the caller sees.
func (d *drawing) draw(see *sight) {
	for _, w := range d.book.Agreed().Windows {
		if see.of(w.For, w.Owner()) {
			d.window(w)
		}
	}
	for _, f := range d.book.Agreed().Freezes {
		if see.of(f.For, f.Owner()) && d.concerns(f.For, f.Owner()) {
			d.freeze(f)
		}
	}
}

// concerns reports whether a window or a freeze of a scope, and of an owner, holds for the customer
// of the question.
func (d *drawing) concerns(scope windows.Scope, owner string) bool {
	if d.only == "" || owner == d.only {
		return true
	}
	_, there := d.there[scope][d.only]
	return owner == "" && (there || scope == windows.Scope{})
}

// window adds the occurrences of a window, once for each customer who has to approve them.
func (d *drawing) window(w windows.Window) {
	owner := w.Owner()
	if !d.concerns(w.For, owner) {
		return
	}
	if owner != "" || !w.Approval || len(d.there[w.For]) == 0 {
		d.occurrences(w, owner, nil)
		return
	}
	for _, customer := range slices.Sorted(maps.Keys(d.there[w.For])) {
		if d.only != "" && customer != d.only {
			continue
		}
		// At a place the window is there only after the first approval of its customer.
		agreed := map[int64]windows.Approved{}
		for o := range d.book.OccurrencesAt(d.there[w.For][customer], w.Name, d.from) {
			if !o.Start.Before(d.until) || len(agreed) > openingsMax {
				break
			}
			agreed[o.Start.Unix()] = o
		}
		d.occurrences(w, customer, agreed)
	}
}

// occurrences adds the occurrences of a window for a customer. At a shared place agreed has those
// that the customer has approved; nil: the window belongs to the customer.
func (d *drawing) occurrences(w windows.Window, customer string,
	agreed map[int64]windows.Approved) {
	for o := range d.book.Occurrences(w.Name, d.from) {
		if !o.Start.Before(d.until) {
			return
		}
		if len(d.openings) >= openingsMax {
			d.more = true
			return
		}
		if agreed != nil {
			theirs := agreed[o.Start.Unix()]
			o.OK, o.Approval = theirs.OK, theirs.Approval
		}
		one := api.CalendarOpening{Occurrence: describeOccurrence(w, o), For: w.Whose(),
			Customer: customer, Asks: w.Approval, Hash: w.Hash()}
		if p, known := d.there[w.For][customer]; known {
			if f, _, frozen := d.book.Frozen(p, o.Start); frozen {
				one.Frozen = f.Name
			}
		}
		d.openings = append(d.openings, one)
	}
}

// freeze adds the stretches of a freeze.
func (d *drawing) freeze(f windows.Freeze) {
	info := describeFreeze(d.from, d.table, f)
	for at := d.from; len(d.freezes) < openingsMax; {
		start, end := f.Next(at)
		if start.IsZero() && end.IsZero() || !start.Before(d.until) {
			return
		}
		d.freezes = append(d.freezes, api.CalendarFreeze{Name: f.Name, For: f.Whose(),
			Customer: f.Owner(), Reason: f.Reason, Start: jobs.Time{Time: start},
			End: jobs.Time{Time: end}, Ordered: info.Ordered})
		if end.IsZero() || !end.After(at) {
			return
		}
		at = end
	}
	d.more = true
}

// calendar returns the answer.
func (d *drawing) calendar() api.Calendar {
	slices.SortStableFunc(d.openings, func(a, b api.CalendarOpening) int {
		return a.Start.Compare(b.Start.Time)
	})
	slices.SortStableFunc(d.freezes, func(a, b api.CalendarFreeze) int {
		return a.Start.Compare(b.Start.Time)
	})
	customers := slices.Sorted(maps.Keys(d.there[windows.Scope{}]))
	return api.Calendar{From: jobs.Time{Time: d.from}, Until: jobs.Time{Time: d.until},
		Customers: append([]string{}, customers...),
		Openings:  append([]api.CalendarOpening{}, d.openings...),
		Freezes:   append([]api.CalendarFreeze{}, d.freezes...), More: d.more}
}

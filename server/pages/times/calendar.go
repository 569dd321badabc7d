package times

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/server/pages/frame"
	"muster/windows"
)

// The bounds of what one page draws, and of what its lists have.
const (
	blocksAWeek  = 8
	blocksAMonth = 3
	listed       = 50
)

// atPlace is the value of tz for the clocks of the places of the windows.
const atPlace = "place"

// A place is the part of time that a page shows, and the clocks on which it shows it.
type place struct {
	month    bool
	first    time.Time // a day, in UTC
	days     int
	customer string
	tz       string
	loc      *time.Location // nil: of the place
	now      time.Time
}

// placeOf reads the address of a page.
func placeOf(q url.Values) (place, error) {
	p := place{now: time.Now(), customer: strings.TrimSpace(q.Get("customer")), days: 7,
		month: q.Get("view") == "month", tz: strings.TrimSpace(q.Get("tz")), loc: time.UTC}
	switch p.tz {
	case "", "UTC":
		p.tz = "UTC"
	case atPlace:
		p.loc = nil
	default:
		zone, err := windows.LoadZone(p.tz)
		if err != nil {
			return p, frame.Refusal(http.StatusUnprocessableEntity, "tz: %s", err)
		}
		p.loc = zone.Location(p.now)
	}
	loc, _ := p.clocks("")
	today := p.now.In(loc)
	if from := q.Get("from"); from != "" {
		var err error
		if today, err = time.Parse(time.DateOnly, from); err != nil {
			return p, frame.Refusal(http.StatusUnprocessableEntity,
				"from=%s: want a day as 2026-12-24", from)
		}
	}
	p.first = time.Date(today.Year(), today.Month(), today.Day(), 0, 0, 0, 0, time.UTC)
	if p.month {
		p.first = p.first.AddDate(0, 0, 1-p.first.Day())
		p.days = p.first.AddDate(0, 1, -1).Day()
	} else {
		p.first = p.first.AddDate(0, 0, -(int(p.first.Weekday())+6)%7) // weeks begin on Monday
	}
	return p, nil
}

// clocks returns the clocks for what is at a zone, and their name.
func (p place) clocks(zone string) (*time.Location, string) {
	if p.loc != nil {
		return p.loc, p.tz
	}
	if z, err := windows.LoadZone(zone); zone != "" && err == nil {
		return z.Location(p.now), zone
	}
	return time.UTC, "UTC"
}

// link returns the address of the page with another first day, or another view.
func (p place) link(first time.Time, month bool) string {
	q := url.Values{"view": {"week"}, "from": {first.Format(time.DateOnly)}, "tz": {p.tz}}
	if month {
		q.Set("view", "month")
	}
	if p.customer != "" {
		q.Set("customer", p.customer)
	}
	return "/windows?" + q.Encode()
}

// step returns the first day of the span so many spans later.
func (p place) step(n int) time.Time {
	if p.month {
		return p.first.AddDate(0, n, 0)
	}
	return p.first.AddDate(0, 0, 7*n)
}

// title names the span.
func (p place) title() string {
	if p.month {
		return p.first.Format("January 2006")
	}
	return p.first.Format("2 January") + " to " + p.first.AddDate(0, 0, 6).Format("2 January 2006")
}

// ask returns the question for the span, wide enough for the clocks of every place.
func (p place) ask() url.Values {
	q := url.Values{"from": {p.first.Add(-15 * time.Hour).Format(time.RFC3339)},
		"until": {p.step(1).Add(15 * time.Hour).Format(time.RFC3339)}}
	if p.customer != "" {
		q.Set("customer", p.customer)
	}
	return q
}

// facts has what the page of windows shows.
type facts struct {
	place
	calendar api.Calendar
	blocks   []block
	others   int // blocks that are not drawn
	list     api.WindowList
	ahead    frame.Asked[api.OpeningsAhead]
	can      []frame.Order
	cannot   []frame.Denied
}

// theCalendar shows a week or a month of openings and freezes, and what comes next.
func theCalendar(h frame.House, r *http.Request) (frame.Show, error) {
	p, err := placeOf(r.URL.Query())
	if err != nil {
		return frame.Show{}, err
	}
	f := facts{place: p}
	if err := h.Get("/v1/calendar", p.ask(), &f.calendar); err != nil {
		return frame.Show{}, err
	}
	if err := h.Get("/v1/windows", nil, &f.list); err != nil {
		return frame.Show{}, err
	}
	f.blocks = blocksOf(f.calendar, p)
	f.blocks = slices.DeleteFunc(f.blocks, func(b block) bool {
		return !slices.ContainsFunc(b.days, func(d day) bool { return len(d.items) > 0 })
	})
	most := blocksAWeek
	if p.month {
		most = blocksAMonth
	}
	if len(f.blocks) > most {
		f.others, f.blocks = len(f.blocks)-most, f.blocks[:most]
	}
	f.ahead = frame.Try[api.OpeningsAhead](h, "/v1/plan/openings", nil)
	f.orders(h)
	return frame.Show{Title: "Windows", Nav: "Windows", Top: filters(f), Parts: []frame.Part{
		{ID: "calendar", Body: calendarPart(f)}, {ID: "ahead", Body: aheadPart(f.ahead)},
		{ID: "orders", Body: ordersPart(f)}, {ID: "windows", Body: windowsPart(f.list)},
		{ID: "freezes", Live: true, Body: freezesPart(f.list)},
		{ID: "approvals", Body: approvalsPart(f.list)}}}, nil
}

// orders finds out which orders about windows the person may give.
func (f *facts) orders(h frame.House) {
	for _, o := range []struct{ word, name, link, method, path string }{
		{"propose", "Propose an opening", "/windows/order/propose", http.MethodPost,
			"/v1/windows/propose"},
		{"import", "Import a file", "/windows/import", http.MethodPut, "/v1/windows"},
		{"freeze", "Freeze", "", http.MethodPost, "/v1/freezes"},
	} {
		if err := h.May(o.method, o.path); err != nil {
			f.cannot = append(f.cannot, frame.Refused(o.name, err))
			continue
		}
		if o.word == "propose" && f.customer != "" {
			o.link += "?customer=" + url.QueryEscape(f.customer)
		}
		f.can = append(f.can, frame.Order{Word: o.word, Name: o.name, Link: o.link})
	}
}

// export answers GET /windows/calendar.ics: the openings of 90 days as an iCalendar file.
func export(p *frame.Frame, w http.ResponseWriter, r *http.Request) {
	h, q := p.House(w, r), r.URL.Query()
	at, err := placeOf(q)
	if err != nil {
		p.Refuse(w, r, h, err)
		return
	}
	ask := at.ask()
	ask.Set("from", at.first.Format(time.RFC3339))
	ask.Set("until", at.first.AddDate(0, 0, 90).Format(time.RFC3339))
	var c api.Calendar
	err = h.Get("/v1/calendar", ask, &c)
	if err == nil && c.More {
		err = frame.Refusal(http.StatusUnprocessableEntity,
			"these are too many openings for one file: choose a customer")
	}
	if err != nil {
		p.Refuse(w, r, h, err)
		return
	}
	var list []windows.Approved
	for _, o := range c.Openings {
		if window := q.Get("window"); window == "" || window == o.Window {
			list = append(list, windows.Approved{OK: o.Approved, Occurrence: windows.Occurrence{
				Window: o.Window, Start: o.Start.Time, End: o.End.Time}})
		}
	}
	w.Header().Set("Content-Type", "text/calendar; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="windows.ics"`)
	// A browser that does not read its file has gone.
	_, _ = w.Write(windows.WriteICal(list, at.now))
}

// freezeState says whether a freeze is in force.
func freezeState(f api.FreezeInfo) string {
	switch {
	case f.Active:
		return "in force"
	case f.Over:
		return "over"
	}
	return "to come"
}

// covers says what an approval is for.
func covers(a windows.Approval) string {
	if len(a.Starts) > 0 {
		return frame.Count(len(a.Starts), "opening", "openings")
	}
	return spanOf(a.From, a.Until)
}

// later returns the parts of tasks that would be done behind the next opening, each with its
// opening.
func later(o api.OpeningsAhead) []api.OpeningAhead {
	return o.Openings[min(1, len(o.Openings)):min(6, len(o.Openings))]
}

// zonesOf returns the zones of windows, for the choice of clocks.
func zonesOf(list []api.WindowInfo) []string {
	var out []string
	for _, w := range list {
		out = append(out, w.Zone)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

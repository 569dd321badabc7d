package times

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/api"
)

// unitsAnHour is the width of an hour in the picture of a day, which has room for 25 hours: so that
// a day of 23 hours is drawn shorter than others, and one of 25 longer.
const unitsAnHour = 40

// A block has the days of one customer, site, group or host.
type block struct {
	name string // as "customer acme"
	zone string // on whose clocks its days are drawn
	days []day
}

// A day is one on the clocks of a zone.
type day struct {
	title string
	note  string // why it has not 24 hours; empty: it has
	hours float64
	lines string // the path of the lines of its hours
	ticks []tick
	bars  []bar
	items []item
}

// A tick is a mark at an hour.
type tick struct {
	x    float64
	text string
}

// A bar is a stretch of the picture.
type bar struct {
	x, width, y, height float64
	kind                string
}

// An item says in words what a bar shows.
type item struct {
	sign, when, name, state string
	utc                     string // the same time in UTC
	word, link              string // an order about it; empty: none
}

// dayOf returns the empty day that begins at an instant and ends at another.
func dayOf(begin, end time.Time) day {
	d := day{title: begin.Format("Mon 2 Jan"), hours: end.Sub(begin).Hours()}
	switch {
	case d.hours < 24:
		d.note = number(d.hours) + " hours: the clocks go forward"
	case d.hours > 24:
		d.note = number(d.hours) + " hours: the clocks go back"
	}
	var lines strings.Builder
	for t := begin; !t.After(end); t = t.Add(time.Hour) {
		x := t.Sub(begin).Hours() * unitsAnHour
		fmt.Fprintf(&lines, "M%s 0V40", number(x))
		if h := t.Hour(); t.Before(end) && h%6 == 0 && t.Minute() == 0 {
			d.ticks = append(d.ticks, tick{x, fmt.Sprintf("%02d", h)})
		}
	}
	d.lines = lines.String()
	return d
}

func number(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }

// midnights returns the beginnings of days from a date on, and the end of the last.
func midnights(first time.Time, days int) []time.Time {
	var out []time.Time
	for i := range days + 1 {
		out = append(out, time.Date(first.Year(), first.Month(), first.Day()+i, 0, 0, 0, 0,
			first.Location()))
	}
	return out
}

// stretch is something that lasts from one instant to another.
type stretch struct {
	start, end time.Time // a zero end: until somebody lifts it
	bar        bar
	item       item
}

// put adds what falls into a day that begins and ends at instants.
func (d *day) put(s stretch, begin, end time.Time) {
	if !s.start.Before(end) || !s.end.IsZero() && !s.end.After(begin) {
		return
	}
	from, to := s.start, s.end
	if from.Before(begin) {
		from = begin
	}
	if to.IsZero() || to.After(end) {
		to = end
	}
	b := s.bar
	b.x = from.Sub(begin).Hours() * unitsAnHour
	b.width = max(3, to.Sub(from).Hours()*unitsAnHour)
	d.bars = append(d.bars, b)
	i := s.item
	i.when = between(s, begin, end, d.note != "")
	if s.start.Before(begin) {
		i.word, i.link = "", "" // its order is at its first day
	}
	d.items = append(d.items, i)
}

// between says from when to when something lasts, within a day. On a day on which the clocks change
// the name of the clock tells equal readings apart.
func between(s stretch, begin, end time.Time, changed bool) string {
	form, loc := "15:04", begin.Location()
	if changed {
		form = "15:04 MST"
	}
	from, to := "from the day before", "to the next day"
	if !s.start.Before(begin) {
		from = s.start.In(loc).Format(form)
	}
	switch {
	case s.end.IsZero():
		to = "until it is lifted"
	case s.end.Equal(end):
		to = "24:00"
	case s.end.Before(end):
		to = s.end.In(loc).Format(form)
	}
	return from + " – " + to
}

// blocksOf draws what opens and what is frozen, a block for each customer, site, group or host.
func blocksOf(c api.Calendar, p place) []block {
	stretches, zones := map[string][]stretch{}, map[string]string{}
	var names []string
	add := func(name, zone string, s stretch) {
		if stretches[name] == nil {
			names = append(names, name)
		}
		if zones[name] == "" {
			zones[name] = zone
		}
		stretches[name] = append(stretches[name], s)
	}
	for _, o := range c.Openings {
		add(blockOf(o.For, o.Customer), o.Zone, openingOf(o, p))
	}
	var all []stretch
	for _, f := range c.Freezes {
		if f.For == "everyone" {
			all = append(all, freezeOf(f))
			continue
		}
		add(blockOf(f.For, f.Customer), "", freezeOf(f))
	}
	slices.Sort(names)
	if len(all) > 0 && len(names) == 0 {
		names = []string{"everyone"}
	}
	var out []block
	for _, name := range names {
		list := slices.Concat(stretches[name], all)
		slices.SortStableFunc(list, func(a, b stretch) int { return a.start.Compare(b.start) })
		out = append(out, p.block(name, zones[name], list))
	}
	return out
}

// blockOf returns the name of the block of a window or a freeze.
func blockOf(of, customer string) string {
	if customer == "" || strings.Contains(of, "customer ") {
		return of
	}
	return of + ", for customer " + customer
}

// block draws the days of one block, on the clocks that the page was asked for.
func (p place) block(name, zone string, list []stretch) block {
	loc, title := p.clocks(zone)
	b := block{name: name, zone: title}
	at := midnights(time.Date(p.first.Year(), p.first.Month(), p.first.Day(), 0, 0, 0, 0, loc), p.days)
	for i := range p.days {
		d := dayOf(at[i], at[i+1])
		for _, s := range list {
			d.put(s, at[i], at[i+1])
		}
		b.days = append(b.days, d)
	}
	return b
}

// The bars of a day: openings above, freezes below.
var (
	openBar   = bar{y: 2, height: 20, kind: "w-open"}
	askedBar  = bar{y: 2, height: 20, kind: "w-asked"}
	frozenBar = bar{y: 26, height: 10, kind: "w-frozen"}
)

// openingOf returns an opening as it is drawn.
func openingOf(o api.CalendarOpening, p place) stretch {
	s := stretch{start: o.Start.Time, end: o.End.Time, bar: openBar, item: item{sign: "✓",
		name: o.Window, state: "approved", utc: spanOf(o.Start.Time, o.End.Time)}}
	over := !o.End.After(p.now)
	switch {
	case !o.Asks:
		s.item.state = "open, needs no approval"
	case o.Approved:
		s.item.state = "approved (" + o.Approval + ")"
		if !over {
			s.item.word, s.item.link = "Withdraw", "/windows/approvals/"+o.Approval+"/order/withdraw"
		}
	case over:
		s.bar, s.item.sign, s.item.state = askedBar, "–", "was not approved"
	default:
		s.bar, s.item.sign, s.item.state = askedBar, "?", "nobody has approved it yet"
		s.item.word, s.item.link = "Approve", approveLink(o)
	}
	if o.Frozen != "" {
		s.item.sign, s.item.state = "✕", s.item.state+"; frozen at its start by "+o.Frozen
	}
	return s
}

// freezeOf returns a freeze as it is drawn.
func freezeOf(f api.CalendarFreeze) stretch {
	s := stretch{start: f.Start.Time, end: f.End.Time, bar: frozenBar, item: item{sign: "✕",
		name: "freeze " + f.Name, state: cmp.Or(f.Reason, "without a reason"),
		utc: spanOf(f.Start.Time, f.End.Time)}}
	if f.Ordered != "" {
		s.item.word, s.item.link = "Lift", "/windows/freezes/"+f.Name+"/order/unfreeze"
	}
	return s
}

// spanOf returns a span in UTC.
func spanOf(from, to time.Time) string {
	text := from.UTC().Format("2006-01-02 15:04") + " to "
	if to.IsZero() {
		return text + "its lifting"
	}
	return text + to.UTC().Format("2006-01-02 15:04 UTC")
}

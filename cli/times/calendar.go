package times

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
	"muster/jobs"
	"muster/windows"
)

// cellsADay is the number of characters for a day in a calendar: one for half an hour.
const cellsADay = 48

// The characters of a calendar.
const (
	cellShut   = '·'
	cellOpen   = '█'
	cellAsked  = '░' // nobody has approved it yet
	cellFrozen = 'x'
)

func newWindowsCalendar() *cobra.Command {
	month, from, zone := false, "", ""
	c := &cobra.Command{
		Use:   "calendar SELECTOR",
		Short: "Draw when hosts are open, for a week or a month",
		Long: `calendar draws a line a day, a character for half an hour:
█ open, ░ not approved yet, x frozen, · shut. Hosts with the same openings are
drawn once. Times are on the clocks of this machine, or of --zone.`,
		Example: `  muster windows calendar customer=acme
  muster windows calendar fw001 --month --zone Europe/Zurich`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.HostName,
	}
	c.Flags().BoolVar(&month, "month", false, "a month instead of a week")
	c.Flags().StringVar(&from, "from", "", "first `day` (default today)")
	c.Flags().StringVar(&zone, "zone", "", "IANA `name` of the zone (default that of this machine)")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		on, err := s.SelectorArg(ctx, args, cli.OrSayAll)
		loc, first, wrong := firstDay(zone, from)
		if err = errors.Join(err, wrong); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		l, err := windowList(ctx, s.Client)
		if err != nil {
			return err
		}
		if l.Timetable.Version == 0 && len(l.Windows)+len(l.Freezes) > 0 {
			return errors.New("the calendar is computed of the whole timetable, which the server shows " +
				"to those who see all hosts: `muster windows next HOST` says when one of yours is open")
		}
		book, err := l.Timetable.Book()
		if err != nil {
			return fmt.Errorf("the timetable of the server cannot be read: is this muster older? %w", err)
		}
		var hosts api.HostList
		if err := s.Get(ctx, "/v1/hosts", url.Values{"on": {on}}, &hosts); err != nil {
			return err
		}
		days := 7
		if month {
			days = 31
		}
		pages := calendar{book, loc, first, days}.pages(hosts.Hosts)
		if s.JSON {
			return s.WriteJSON(pages)
		}
		return s.Write(calendarText(pages))
	})
}

// firstDay returns midnight of the first day, by the clocks of the zone.
func firstDay(zone, from string) (*time.Location, time.Time, error) {
	loc := time.Local
	if zone != "" {
		z, err := windows.LoadZone(zone)
		if err != nil {
			return nil, time.Time{}, fmt.Errorf("--zone: %w", err)
		}
		loc = z.Location(time.Now())
	}
	day := time.Now().In(loc)
	if from != "" {
		var err error
		if day, err = time.ParseInLocation(time.DateOnly, from, loc); err != nil {
			return nil, time.Time{}, fmt.Errorf("--from %q: want a day as 2026-12-24", from)
		}
	}
	return loc, time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, loc), nil
}

// calendarPage is the calendar of hosts with the same openings.
type calendarPage struct {
	Hosts string        `json:"hosts"` // folded: fw[001-300]
	Days  []calendarDay `json:"days"`

	names []string
}

type calendarDay struct {
	Date  string `json:"date"`
	Cells string `json:"cells"` // one for each half hour
}

// calendar is the span to draw.
type calendar struct {
	book  *windows.Book
	loc   *time.Location
	first time.Time // midnight of the first day there
	days  int
}

// pages draws hosts with the same openings once.
func (c calendar) pages(hosts []fleet.Host) []calendarPage {
	places, pages := map[windows.Place][]calendarDay{}, map[string]*calendarPage{}
	var order []string
	for _, h := range hosts {
		p := jobs.Place(h)
		if !special(c.book, h.Name) {
			p.Host = "" // so that hosts without windows of their own are computed once
		}
		if _, ok := places[p]; !ok {
			places[p] = c.draw(p)
		}
		key := fmt.Sprint(places[p])
		if pages[key] == nil {
			pages[key] = &calendarPage{Days: places[p]}
			order = append(order, key)
		}
		pages[key].names = append(pages[key].names, h.Name)
	}
	var list []calendarPage
	for _, key := range order {
		page := *pages[key]
		page.Hosts = fleet.Fold(page.names)
		list = append(list, page)
	}
	return cli.Filled(list)
}

// special reports whether the timetable has an entry for the host alone.
func special(book *windows.Book, host string) bool {
	s := windows.Scope{Level: windows.Host, Name: host}
	a := book.Agreed()
	return slices.ContainsFunc(a.Windows, func(w windows.Window) bool { return w.For == s }) ||
		slices.ContainsFunc(a.Freezes, func(f windows.Freeze) bool { return f.For == s })
}

// draw draws the days of a place.
func (c calendar) draw(p windows.Place) []calendarDay {
	last := c.first.AddDate(0, 0, c.days)
	var all []windows.Approved
	for _, w := range c.book.Explain(p).Windows {
		for o := range c.book.OccurrencesAt(p, w.Name, c.first) {
			if !o.Start.Before(last) {
				break
			}
			all = append(all, o)
		}
	}
	var days []calendarDay
	for i := range c.days {
		day := c.first.AddDate(0, 0, i)
		cells := make([]rune, cellsADay)
		for n := range cells {
			// By the clock: even in a night of 23 or 25 hours the columns are the hours.
			at := time.Date(day.Year(), day.Month(), day.Day(), n/2, n%2*30, 0, 0, c.loc)
			cells[n] = calendarCell(c.book, p, at, all)
		}
		days = append(days, calendarDay{day.Format("Mon 2006-01-02"), string(cells)})
	}
	return days
}

func calendarCell(book *windows.Book, p windows.Place, at time.Time, all []windows.Approved) rune {
	cell := cellShut
	for _, o := range all {
		if !o.Start.Before(at.Add(30*time.Minute)) || !o.End.After(at) {
			continue
		}
		if o.OK {
			cell = cellOpen
			break
		}
		cell = cellAsked
	}
	if _, _, frozen := book.Frozen(p, at); frozen {
		return cellFrozen
	}
	return cell
}

func calendarText(pages []calendarPage) string {
	var b strings.Builder
	for i, page := range pages {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "%s\n%-15s", cli.Cell(page.Hosts), "")
		for h := 0; h < 24; h += 3 {
			fmt.Fprintf(&b, "%-6s", fmt.Sprintf("%02d", h))
		}
		b.WriteString("\n")
		for _, d := range page.Days {
			fmt.Fprintf(&b, "%-15s%s\n", cli.Cell(d.Date), d.Cells)
		}
	}
	b.WriteString("█ open   ░ not approved   x frozen   · shut\n")
	return b.String()
}

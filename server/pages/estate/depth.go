package estate

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
)

// A span of time in the picture of a depth has the largest numbers of it.
type span struct {
	from   time.Time
	known  bool // somebody looked in it
	counts api.DepthSample
}

// depthFacts has the depth of a zone over time.
type depthFacts struct {
	zone   string
	server jobs.Time // since when the server looks
	wide   time.Duration
	spans  []span // of the picture
	rows   []span // of the table
	most   int64
}

// widths returns the time that a span of the picture, and one of the table, has: at most 96 and 24
// of them. Looks of more than an hour ago are joined to five minutes, so no span is shorter then.
func widths(all time.Duration) (picture, table time.Duration) {
	switch {
	case all <= time.Hour:
		return time.Minute, 5 * time.Minute
	case all <= 8*time.Hour:
		return 5 * time.Minute, 30 * time.Minute
	}
	return 15 * time.Minute, time.Hour
}

// depthOf returns the depth of a zone over time, for its picture and its table.
func depthOf(l api.DepthList, z api.ZoneDepth) depthFacts {
	f := depthFacts{zone: z.Zone, server: l.Since}
	if len(z.Samples) == 0 {
		return f
	}
	from, to := z.Samples[0].At.Time, z.Samples[len(z.Samples)-1].At.Time
	picture, table := widths(to.Sub(from))
	f.wide = picture
	f.spans, f.rows = spansOf(z.Samples, picture), spansOf(z.Samples, table)
	for _, s := range f.spans {
		f.most = max(f.most, s.counts.Queued, s.counts.Again, s.counts.Due)
	}
	return f
}

// spansOf joins samples to spans of a width, without a hole between the first and the last.
func spansOf(list []api.DepthSample, wide time.Duration) []span {
	var out []span
	for _, s := range list {
		at := s.At.Truncate(wide)
		for len(out) > 0 && out[len(out)-1].from.Before(at) {
			out = append(out, span{from: out[len(out)-1].from.Add(wide)})
		}
		if len(out) == 0 {
			out = append(out, span{from: at})
		}
		last := &out[len(out)-1]
		last.known = true
		last.counts.Queued = max(last.counts.Queued, s.Queued)
		last.counts.Again = max(last.counts.Again, s.Again)
		last.counts.Due = max(last.counts.Due, s.Due)
	}
	return out
}

// The size of the picture, in its own units.
const (
	depthWide = 1000
	depthHigh = 100
)

// line returns the path of a number over time. A span in which nobody looked is a hole. Closed, it
// is an area down to the ground.
func (f depthFacts) line(of func(api.DepthSample) int64, closed bool) string {
	var b strings.Builder
	wide := float64(depthWide) / float64(len(f.spans))
	drawn := false
	end := func() {
		if drawn && closed {
			fmt.Fprintf(&b, "V%dZ", depthHigh)
		}
		drawn = false
	}
	for i, s := range f.spans {
		x := float64(i) * wide
		if !s.known {
			end()
			continue
		}
		y := float64(depthHigh) - float64(depthHigh)*float64(of(s.counts))/float64(max(f.most, 1))
		switch {
		case drawn:
			fmt.Fprintf(&b, "V%.1f", y)
		case closed:
			fmt.Fprintf(&b, "M%.1f %dV%.1f", x, depthHigh, y)
		default:
			fmt.Fprintf(&b, "M%.1f %.1f", x, y)
		}
		fmt.Fprintf(&b, "H%.1f", x+wide)
		drawn = true
	}
	end()
	return b.String()
}

func dueOf(s api.DepthSample) int64    { return s.Due }
func queuedOf(s api.DepthSample) int64 { return s.Queued }

// words says in words what the picture shows.
func (f depthFacts) words() string {
	last := f.spans[len(f.spans)-1]
	return fmt.Sprintf("From %s to %s: at most %d jobs queued and %d due; last %d queued and %d due",
		f.spans[0].from.Format(frame.TextForm), last.from.Add(f.wide).Format(frame.TextForm),
		f.top(queuedOf), f.top(dueOf), last.counts.Queued, last.counts.Due)
}

// top returns the largest of a number.
func (f depthFacts) top(of func(api.DepthSample) int64) int64 {
	var most int64
	for _, s := range f.spans {
		most = max(most, of(s.counts))
	}
	return most
}

// holes counts the spans of the picture in which nobody looked.
func (f depthFacts) holes() int {
	n := 0
	for _, s := range f.spans {
		if !s.known {
			n++
		}
	}
	return n
}

// cell returns a number of a row; in a span in which nobody looked it is not known.
func (s span) cell(n int64) string {
	if !s.known {
		return "not known"
	}
	return strconv.FormatInt(n, 10)
}

// depthIn returns the depth of a zone, if there is one to show.
func depthIn(a frame.Asked[api.DepthList], zone string) (depthFacts, bool) {
	i := slices.IndexFunc(a.Is.Zones, func(z api.ZoneDepth) bool { return z.Zone == zone })
	if i < 0 || len(a.Is.Zones[i].Samples) == 0 {
		return depthFacts{}, false
	}
	return depthOf(a.Is, a.Is.Zones[i]), true
}

// depthsShown is the number of zones whose depth a page shows: each has a picture and a table.
const depthsShown = 6

// lookBack reads the depths of the zones that wait for most, the chosen one first.
func (f *queueFacts) lookBack(h frame.House, chosen string) {
	names := make([]string, 0, len(f.zones))
	for _, z := range f.zones {
		names = append(names, z.of.Zone)
	}
	if i := slices.Index(names, chosen); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, chosen)
	}
	n := min(depthsShown, len(names))
	f.deep = names[n:]
	for _, zone := range names[:n] {
		one := frame.Try[api.DepthList](h, "/v1/queue/depth", url.Values{"zone": {zone}})
		one.Is.Zones = append(f.past.Is.Zones, one.Is.Zones...)
		if f.past = one; one.Why != "" {
			return
		}
	}
}

func instantOf(t time.Time) jobs.Time { return jobs.Time{Time: t} }

package windows

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Days are some days of a calendar, from the first reading of First to that of Last.
type Days struct {
	First Wall `json:"f"`
	Last  Wall `json:"l"`
}

// exceptMax bounds how many days, or spans of days, a window or a schedule may leave out.
const exceptMax = 400

// ParseDays reads a day as "2026-12-24", or a span as "2026-12-24 to 2027-01-03", the last day
// included.
func ParseDays(text string) (Days, error) {
	first, last, span := strings.Cut(text, " to ")
	if !span {
		last = first
	}
	a, errA := time.Parse(time.DateOnly, strings.TrimSpace(first))
	b, errB := time.Parse(time.DateOnly, strings.TrimSpace(last))
	if errA != nil || errB != nil {
		return Days{}, fmt.Errorf("%q is no day: want 2026-12-24, or 2026-12-24 to 2027-01-03",
			clip(text))
	}
	if b.Before(a) {
		return Days{}, fmt.Errorf("%q ends before it begins", clip(text))
	}
	return Days{Wall(a.Unix()), Wall(b.Unix())}, nil
}

// String is the form that [ParseDays] reads.
func (d Days) String() string {
	first, last := d.First.String()[:len(time.DateOnly)], d.Last.String()[:len(time.DateOnly)]
	if first == last {
		return first
	}
	return first + " to " + last
}

// after returns the first reading after the days.
func (d Days) after() Wall { return d.Last + day }

// touching returns the first Days of the list that overlap the readings from from up to to.
func touching(list []Days, from, to Wall) (Days, bool) {
	i := slices.IndexFunc(list, func(d Days) bool { return from < d.after() && to > d.First })
	if i < 0 {
		return Days{}, false
	}
	return list[i], true
}

// except reads the days that a window or a schedule leaves out, in order.
func (r *reader) except(n *yaml.Node) []Days {
	var all []Days
	for _, item := range r.oneOrMore(n) {
		text := r.text(item)
		if text == "" {
			continue
		}
		d, err := ParseDays(text)
		if err != nil {
			r.mistake(item, "except: %v", err)
			continue
		}
		all = append(all, d)
	}
	if len(all) > exceptMax {
		r.mistake(n, "except: %d days, at most %d", len(all), exceptMax)
		return nil
	}
	slices.SortFunc(all, func(a, b Days) int {
		return cmp.Or(cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	return slices.Compact(all)
}

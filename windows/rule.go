package windows

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
)

// A Rule is the RRULE of an event, as readings of a clock. It is kept as it was written, and each
// answer computes its times from the requested time on. So the cost of an answer depends neither
// on the age of the rule nor on its end.
//
// The library for RRULE only reads the text. It can only count from the beginning of a rule, which
// takes milliseconds if that is years ago, so this package computes the repetitions itself.
type Rule struct {
	Freq     Freq `json:"f"`
	Interval int  `json:"n,omitempty"` // 0 means 1
	Start    Wall `json:"s"`           // DTSTART
	Until    Wall `json:"u,omitempty"` // the last possible reading; 0: there is none
	RuleDays
	Times     []Wall       `json:"t"`           // times of the day, in order
	SetPos    []int        `json:"p,omitempty"` // which times of a period count; empty: all
	WeekStart time.Weekday `json:"w,omitempty"`
}

// RuleDays holds the days of a rule. A day has to match all the fields that are set.
type RuleDays struct {
	Months    uint16       `json:"m,omitempty"` // a bit for each month, from 1<<1 on
	MonthDays []int        `json:"md,omitempty"`
	YearDays  []int        `json:"yd,omitempty"`
	Weeks     []int        `json:"wn,omitempty"`
	Weekdays  uint8        `json:"d,omitempty"` // a bit for each weekday, Sunday is 1<<0
	Nth       []NthWeekday `json:"dn,omitempty"`
}

// NthWeekday is a weekday such as the first Monday, or with -1 the last one, of a month or a year.
type NthWeekday struct {
	N   int          `json:"n"`
	Day time.Weekday `json:"d,omitempty"`
}

// Freq is the period of a rule.
type Freq int

// The periods.
const (
	Daily Freq = iota
	Weekly
	Monthly
	Yearly
)

var freqs = map[rrule.Frequency]Freq{rrule.DAILY: Daily, rrule.WEEKLY: Weekly,
	rrule.MONTHLY: Monthly, rrule.YEARLY: Yearly}

// ruleEnd ends all rules that have no end of their own. Without it the search for the times of a
// rule that never matches would not end.
const ruleEnd Wall = 4_102_444_800 // 2100-01-01

// countMax bounds COUNT.
const countMax = 100_000

// parseRule reads an RRULE of an event that begins at start on clocks of z.
func parseRule(p property, start Wall, z Zone) (Rule, error) {
	// RFC 5545 §2: values that are not quoted may be written in upper or lower case.
	text := strings.ToUpper(strings.TrimSpace(p.value))
	wrong := func(format string, args ...any) (Rule, error) {
		return Rule{}, mistakeAt(p.line, "RRULE %q: %s", word(p.value), fmt.Sprintf(format, args...))
	}
	option, err := rrule.StrToROption(text)
	if err != nil {
		// The library's message quotes the value, which must not be repeated as a whole.
		what, value, quotes := strings.Cut(err.Error(), ": ")
		if quotes {
			what += ": " + word(value)
		}
		return wrong("%s", what)
	}
	// Shorter periods make no windows.
	if option.Freq > rrule.DAILY {
		return wrong("want FREQ=DAILY, WEEKLY, MONTHLY or YEARLY")
	}
	if len(option.Byhour)*max(1, len(option.Byminute))*max(1, len(option.Bysecond)) > 24 {
		return wrong("more than 24 times a day")
	}
	if option.Count > countMax {
		return wrong("COUNT is at most %d", countMax)
	}
	if len(option.Byeaster) > 0 {
		return wrong("BYEASTER is no part of RFC 5545")
	}
	r := newRule(option, start)
	if !option.Until.IsZero() {
		r.Until = Wall(option.Until.Unix())
		if strings.HasSuffix(untilOf(text), "Z") {
			r.Until = z.Wall(option.Until)
		}
	}
	// The library checks the bounds of each part when it makes a rule.
	option.Dtstart = time.Unix(int64(start), 0).UTC()
	option.Count = min(option.Count, 1)
	if _, err := rrule.NewRRule(*option); err != nil {
		return wrong("%v", err)
	}
	return r, nil
}

// newRule turns the option into a rule, with the parts that RFC 5545 takes from DTSTART.
func newRule(o *rrule.ROption, start Wall) Rule {
	r := Rule{Freq: freqs[o.Freq], Interval: max(o.Interval, 1), Start: start, SetPos: o.Bysetpos,
		WeekStart: weekdayOf(o.Wkst)}
	for _, m := range o.Bymonth {
		r.Months |= 1 << m
	}
	r.MonthDays, r.YearDays, r.Weeks = o.Bymonthday, o.Byyearday, o.Byweekno
	for _, d := range o.Byweekday {
		if d.N() == 0 || r.Freq < Monthly {
			r.Weekdays |= 1 << weekdayOf(d)
			continue
		}
		r.Nth = append(r.Nth, NthWeekday{d.N(), weekdayOf(d)})
	}
	_, month, dayOf := start.date()
	if len(r.MonthDays)+len(r.YearDays)+len(r.Weeks)+len(r.Nth) == 0 && r.Weekdays == 0 {
		switch r.Freq {
		case Yearly:
			if r.Months == 0 {
				r.Months = 1 << month
			}
			r.MonthDays = []int{dayOf}
		case Monthly:
			r.MonthDays = []int{dayOf}
		case Weekly:
			r.Weekdays = 1 << start.weekday()
		}
	}
	r.Times = timesOf(o, start)
	if o.Count > 0 {
		r.Until = r.nth(o.Count)
	}
	return r
}

// timesOf returns the times of the day of a rule, in order.
func timesOf(o *rrule.ROption, start Wall) []Wall {
	clock := int(start.clock())
	or := func(list []int, one int) []int {
		if len(list) == 0 {
			return []int{one}
		}
		return list
	}
	var times []Wall
	for _, h := range or(o.Byhour, clock/3600) {
		for _, m := range or(o.Byminute, clock/60%60) {
			for _, s := range or(o.Bysecond, clock%60) {
				times = append(times, Wall(h*3600+m*60+s))
			}
		}
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// weekdayOf converts a weekday of the library, which counts from Monday.
func weekdayOf(d rrule.Weekday) time.Weekday { return time.Weekday((d.Day() + 1) % 7) }

// untilOf returns the text of UNTIL.
func untilOf(rule string) string {
	for part := range strings.SplitSeq(rule, ";") {
		if until, ok := strings.CutPrefix(part, "UNTIL="); ok {
			return until
		}
	}
	return ""
}

// end returns the last reading that the rule may have.
func (r *Rule) end() Wall {
	if r.Until == 0 {
		return ruleEnd - 1
	}
	return min(r.Until, ruleEnd-1)
}

// nth returns the n-th reading of the rule, or the end of all rules if it has fewer.
func (r *Rule) nth(n int) Wall {
	if each := len(r.Times) * r.daysEach(); each > 0 {
		// Each period but the first has the same number of readings, so those between can be skipped.
		k := r.number(r.Start)
		list := r.period(k, nil)
		if n > len(list) {
			n -= len(list) + 1
			k += int64(n/each+1) * r.step()
			list, n = r.period(k, nil), n%each+1
		}
		return min(list[n-1], ruleEnd-1)
	}
	last, c := ruleEnd-1, r.from(r.Start)
	for range n {
		w, ok := c.next()
		if !ok {
			return ruleEnd - 1
		}
		last = w
	}
	return last
}

// daysEach returns the number of days of the rule in each period, or 0 if that varies.
func (r *Rule) daysEach() int {
	d := r.RuleDays
	plain := d.Months == 0 &&
		len(d.MonthDays)+len(d.YearDays)+len(d.Weeks)+len(d.Nth)+len(r.SetPos) == 0
	switch {
	case plain && r.Freq == Daily && d.Weekdays == 0:
		return 1
	case plain && r.Freq == Weekly:
		return bits.OnesCount8(d.Weekdays)
	}
	return 0
}

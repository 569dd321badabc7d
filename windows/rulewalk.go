package windows

import (
	"iter"
	"slices"
	"time"
)

// This file computes the times of a rule period by period, from any period on.

// A ruleWalk yields the readings of a rule.
type ruleWalk struct {
	rule   *Rule
	least  Wall // no earlier reading is yielded
	number int64
	list   []Wall // readings of the present period
	at     int
}

// from returns a walk that begins at the first reading that is w or later.
func (r *Rule) from(w Wall) *ruleWalk {
	first := r.number(r.Start)
	number := max(first, r.number(w))
	step := r.step()
	if over := (number - first) % step; over != 0 {
		number += step - over
	}
	c := &ruleWalk{rule: r, least: w, number: number}
	c.list = r.period(number, nil)
	return c
}

// walls yields the readings from from on.
func (r *Rule) walls(from Wall) iter.Seq[Wall] {
	return func(yield func(Wall) bool) {
		c := r.from(from)
		for w, ok := c.next(); ok && yield(w); w, ok = c.next() {
		}
	}
}

// next returns the next reading, or false if there is none.
func (c *ruleWalk) next() (Wall, bool) {
	end := c.rule.end()
	for {
		for c.at < len(c.list) {
			w := c.list[c.at]
			c.at++
			switch {
			case w > end:
				return 0, false
			case w >= c.least:
				return w, true
			}
		}
		c.number = c.rule.after(c.number)
		if c.rule.begins(c.number)*day > end {
			return 0, false
		}
		c.list, c.at = c.rule.period(c.number, c.list[:0]), 0
	}
}

func (r *Rule) step() int64 { return int64(max(r.Interval, 1)) }

// after returns the period of the rule that follows one. It skips months without a time.
func (r *Rule) after(number int64) int64 {
	next := number + r.step()
	if r.Months == 0 || r.Freq > Weekly {
		return next
	}
	first := r.begins(next)
	last := first
	if r.Freq == Weekly {
		last += 6
	}
	for _, d := range []Wall{first, last} {
		if _, month, _ := (d * day).date(); r.Months&(1<<month) != 0 {
			return next
		}
	}
	year, month, _ := (last * day).date()
	for i := range 12 {
		to := time.Date(year, month+1+time.Month(i), 1, 0, 0, 0, 0, time.UTC)
		if r.Months&(1<<to.Month()) == 0 {
			continue
		}
		over := r.number(Wall(to.Unix())) - next
		return next + (over+r.step()-1)/r.step()*r.step()
	}
	return next
}

// weekShift returns the day of 1970 from which the weeks of the rule are counted.
func (r *Rule) weekShift() int64 { return int64(r.WeekStart+7-time.Thursday) % 7 }

// number returns the number of the period that contains a reading.
func (r *Rule) number(w Wall) int64 {
	switch r.Freq {
	case Daily:
		return int64(w.midnight() / day)
	case Weekly:
		return floorDiv(int64(w.midnight()/day)-r.weekShift(), 7)
	}
	year, month, _ := w.date()
	if r.Freq == Monthly {
		return int64(year)*12 + int64(month) - 1
	}
	return int64(year)
}

// begins returns the first day of a period, counted from 1970.
func (r *Rule) begins(number int64) Wall {
	switch r.Freq {
	case Daily:
		return Wall(number)
	case Weekly:
		return Wall(number*7 + r.weekShift())
	case Monthly:
		return firstOfMonth(int(floorDiv(number, 12)), time.Month(number-floorDiv(number, 12)*12+1))
	}
	return firstOfMonth(int(number), time.January)
}

func firstOfMonth(year int, month time.Month) Wall {
	return Wall(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Unix() / day)
}

func floorDiv(a, b int64) int64 {
	if a%b < 0 {
		return a/b - 1
	}
	return a / b
}

// period appends the readings of one period, in order.
func (r *Rule) period(number int64, list []Wall) []Wall {
	begin := r.begins(number)
	switch r.Freq {
	case Daily:
		list = r.days(begin, 1, list)
	case Weekly:
		days := Wall(7)
		// The first week of a rule begins with the rule.
		if start := r.Start.midnight() / day; start > begin && start < begin+7 {
			days, begin = begin+7-start, start
		}
		list = r.days(begin, days, list)
	case Monthly:
		list = r.month(begin, list)
	case Yearly:
		for m := time.January; m <= time.December; m++ {
			list = r.month(firstOfMonth(int(number), m), list)
		}
	}
	list = r.choose(list)
	return slices.DeleteFunc(list, func(w Wall) bool { return w < r.Start })
}

// month appends the readings of a month, if the rule includes it.
func (r *Rule) month(begin Wall, list []Wall) []Wall {
	year, month, _ := (begin * day).date()
	if r.Months != 0 && r.Months&(1<<month) == 0 {
		return list
	}
	return r.days(begin, firstOfMonth(year, month+1)-begin, list)
}

// days appends the readings of some days.
func (r *Rule) days(begin, n Wall, list []Wall) []Wall {
	for d := begin; d < begin+n; d++ {
		if !r.on(d) {
			continue
		}
		for _, t := range r.Times {
			list = append(list, d*day+t)
		}
	}
	return list
}

// on reports whether the rule has times on a day.
func (r *Rule) on(d Wall) bool {
	weekday := (d * day).weekday()
	if r.Weekdays != 0 && len(r.Nth) == 0 && r.Weekdays&(1<<weekday) == 0 {
		return false // the common case needs no calendar
	}
	if r.Months == 0 && len(r.MonthDays)+len(r.YearDays)+len(r.Weeks)+len(r.Nth) == 0 {
		return true
	}
	year, month, dayOf := (d * day).date()
	inMonth := int(firstOfMonth(year, month+1) - firstOfMonth(year, month))
	inYear := int(firstOfMonth(year+1, time.January) - firstOfMonth(year, time.January))
	ofYear := int(d-firstOfMonth(year, time.January)) + 1
	return (r.Months == 0 || r.Months&(1<<month) != 0) && meets(r.MonthDays, dayOf, inMonth) &&
		meets(r.YearDays, ofYear, inYear) && r.inWeek(d) &&
		r.onWeekday(weekday, nthDay{dayOf, inMonth}, nthDay{ofYear, inYear})
}

// meets reports whether a list is empty or contains a number, also counted from the end.
func meets(list []int, n, of int) bool {
	return len(list) == 0 || slices.Contains(list, n) || slices.Contains(list, n-of-1)
}

// An nthDay is a day of a month or year that has of days.
type nthDay struct{ day, of int }

// isNth reports whether the day is the n-th of its weekday, counted from the end if n is negative.
func (p nthDay) isNth(n int) bool {
	if n > 0 {
		return (p.day-1)/7+1 == n
	}
	return (p.of-p.day)/7+1 == -n
}

func (r *Rule) onWeekday(w time.Weekday, ofMonth, ofYear nthDay) bool {
	if r.Weekdays == 0 && len(r.Nth) == 0 || r.Weekdays&(1<<w) != 0 {
		return true
	}
	within := ofMonth
	if r.Freq == Yearly && r.Months == 0 {
		within = ofYear
	}
	return slices.ContainsFunc(r.Nth, func(n NthWeekday) bool {
		return n.Day == w && within.isNth(n.N)
	})
}

// inWeek reports whether a day is in one of the weeks of the rule. A week belongs to the year that
// has most of its days.
func (r *Rule) inWeek(d Wall) bool {
	if len(r.Weeks) == 0 {
		return true
	}
	middle := Wall(floorDiv(int64(d)-r.weekShift(), 7)*7+r.weekShift()) + 3
	year, _, _ := (middle * day).date()
	first, next := firstOfMonth(year, time.January), firstOfMonth(year+1, time.January)
	number := int(middle-first)/7 + 1
	// The last week of the year has its middle in the last seven days.
	weeks := number + int(next-1-middle)/7
	return meets(r.Weeks, number, weeks)
}

// choose returns the readings of a period that BYSETPOS selects.
func (r *Rule) choose(list []Wall) []Wall {
	if len(r.SetPos) == 0 {
		return list
	}
	var chosen []Wall
	for _, p := range r.SetPos {
		if p < 0 {
			p += len(list) + 1
		}
		if p > 0 && p <= len(list) {
			chosen = append(chosen, list[p-1])
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen)
}

package windows

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file reads times in words, as "first Sunday 02:00". They become a [Rule], like the RRULE of
// a calendar, and their times are computed in the same way.

// wordsExamples are the examples in errors about words.
const wordsExamples = `as "every Sunday 02:00", "first and third Sunday 02:00", ` +
	`"last Friday of March, September at 22:00", "last day of the month 23:00" or ` +
	`"every second week on Sunday 02:00 from 2026-01-04"`

// inWords reports whether a text is words. Cron text begins with a number, "*", "?", "@" or "H".
func inWords(text string) bool {
	head, _, _ := strings.Cut(strings.TrimSpace(text), " ")
	letter := func(c rune) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
	return head != "" && !strings.ContainsAny(head[:1], "*?@,-/H") && !strings.Contains(head, "=") &&
		strings.ContainsFunc(head, letter)
}

var ordinals = map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5,
	"last": -1, "other": 2}

// weekdayOfWord reads "Sunday", "Sundays" and "sun".
func weekdayOfWord(word string) (time.Weekday, bool) {
	for d := time.Sunday; d <= time.Saturday; d++ {
		name := strings.ToLower(d.String())
		if word == name || word == name[:3] || word == name+"s" {
			return d, true
		}
	}
	return 0, false
}

// monthOfWord reads "March" and "mar".
func monthOfWord(word string) (time.Month, bool) {
	for m := time.January; m <= time.December; m++ {
		name := strings.ToLower(m.String())
		if word == name || word == name[:3] {
			return m, true
		}
	}
	return 0, false
}

// allDays holds words that stand for several weekdays.
var allDays = map[string]uint8{"weekday": 0b0111110, "weekdays": 0b0111110, "weekend": 0b1000001,
	"weekends": 0b1000001}

// words parses a text word by word.
type words struct {
	text string
	rest []string // "," counts as a word
	rule Rule

	every    bool // it begins with "every"
	interval bool // it names the number of weeks or days between
	anchored bool // it names the first day
	monthly  bool // it contains "of the month", or names months
}

// parseWords reads times in words.
func parseWords(text string) (*Rule, error) {
	spaced := strings.ReplaceAll(strings.ToLower(text), ",", " , ")
	w := &words{text: text, rest: strings.Fields(spaced), rule: Rule{Start: aLeapYear, Interval: 1,
		WeekStart: time.Monday}}
	if err := w.read(); err != nil {
		return nil, fmt.Errorf("%q: %w: want words %s, or cron text as \"0 2 * * SUN\"", clip(text), err,
			wordsExamples)
	}
	if _, ok := w.rule.from(w.rule.Start).next(); !ok {
		return nil, fmt.Errorf("%q never comes: no such day is in the calendar", clip(text))
	}
	return &w.rule, nil
}

func (w *words) read() error {
	if err := w.days(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for len(w.rest) > 0 {
		kind, read := "time", w.times
		switch {
		case w.take("of"):
			kind, read = "of", w.months
		case w.take("from"):
			kind, read = "from", w.anchor
		case w.take("at"), w.atTime():
		default:
			return fmt.Errorf("%q is not understood", clip(w.rest[0]))
		}
		if seen[kind] {
			return fmt.Errorf("it says twice what begins with %q", kind)
		}
		seen[kind] = true
		if err := read(); err != nil {
			return err
		}
	}
	if len(w.rule.Times) == 0 {
		return fmt.Errorf("it says no time of the day")
	}
	return w.check()
}

// take consumes a word if it is the next one.
func (w *words) take(word string) bool {
	if len(w.rest) == 0 || w.rest[0] != word {
		return false
	}
	w.rest = w.rest[1:]
	return true
}

// next returns the next word; empty: there is none.
func (w *words) next() string {
	if len(w.rest) == 0 {
		return ""
	}
	return w.rest[0]
}

// more reports whether a list continues, and consumes its separator.
func (w *words) more() bool {
	comma := w.take(",")
	return w.take("and") || comma
}

// days parses the words that name the days.
func (w *words) days() error {
	if w.take("daily") {
		return nil
	}
	w.every = w.take("every")
	if w.every && w.take("day") {
		return nil
	}
	if w.every && w.take("week") {
		w.take("on")
		return w.weekdays()
	}
	w.take("on")
	w.take("the")
	n, ok := w.ordinal()
	switch {
	case !ok && !w.every:
		return fmt.Errorf("%q is not understood", clip(w.next()))
	case !ok:
		return w.weekdays()
	case w.every && n > 0:
		return w.interleaved(n)
	}
	return w.ofMonth(n)
}

// ordinal parses a word such as "first", "last", "3rd" or "2".
func (w *words) ordinal() (int, bool) {
	word := w.next()
	n, ok := ordinals[word]
	if word == "other" && !w.every {
		return 0, false
	}
	if !ok {
		digits := strings.TrimRight(word, "abcdefghijklmnopqrstuvwxyz")
		suffix := word[len(digits):]
		var err error
		if n, err = strconv.Atoi(digits); err != nil || n < 1 || n > 366 ||
			!slices.Contains([]string{"st", "nd", "rd", "th", ""}, suffix) || suffix == "" && !w.every {
			return 0, false
		}
	}
	w.rest = w.rest[1:]
	return n, true
}

// weekdays parses a list of weekdays, for a weekly rule.
func (w *words) weekdays() error {
	w.rule.Freq = Weekly
	for again := true; again; again = w.more() {
		word := w.next()
		d, ok := weekdayOfWord(word)
		set := allDays[word]
		switch {
		case ok:
			w.rule.Weekdays |= 1 << d
		case set != 0:
			w.rule.Weekdays |= set
		default:
			return fmt.Errorf("%q is no weekday", clip(word))
		}
		w.rest = w.rest[1:]
	}
	return nil
}

// The longest intervals.
const (
	weeksMax = 52
	daysMax  = 366
)

// interleaved parses the words that follow "every second".
func (w *words) interleaved(n int) error {
	w.interval = n > 1
	w.rule.Interval = n
	switch {
	case w.take("week"), w.take("weeks"):
		w.take("on")
		if n > weeksMax {
			return fmt.Errorf("every %d weeks: at most %d", n, weeksMax)
		}
		return w.weekdays()
	case w.take("day"), w.take("days"):
		if n > daysMax {
			return fmt.Errorf("every %d days: at most %d", n, daysMax)
		}
		return nil
	}
	// "every second Sunday" may mean every other Sunday, or the second one of each month: the words
	// "from" or "of" decide.
	rest := w.rest
	if _, ok := weekdayOfWord(w.next()); ok && !slices.Contains(rest, "of") && n > 1 {
		if err := w.weekdays(); err != nil || slices.Contains(w.rest, "from") {
			return err
		}
		day := rest[0]
		return fmt.Errorf("it may mean every other week, or a day of each month: write \"every %s week "+
			"on %s … from DATE\", or \"%s %s of the month …\"", ordinalWord(n), day, ordinalWord(n), day)
	}
	w.interval, w.rule.Interval = false, 1
	return w.ofMonth(n)
}

func ordinalWord(n int) string {
	for _, word := range []string{"first", "second", "third", "fourth", "fifth"} {
		if ordinals[word] == n {
			return word
		}
	}
	return strconv.Itoa(n) + "th"
}

// ofMonth parses the words that follow "first": days of each month.
func (w *words) ofMonth(n int) error {
	w.rule.Freq = Monthly
	list := []int{n}
	for w.more() {
		w.take("the")
		n, ok := w.ordinal()
		if !ok {
			return fmt.Errorf("%q is no place in a month", clip(w.next()))
		}
		list = append(list, n)
	}
	if w.take("day") || w.take("days") || w.next() == "of" {
		for _, n := range list {
			if n > 31 {
				return fmt.Errorf("no month has %d days", n)
			}
		}
		w.rule.MonthDays = list
		return nil
	}
	week := words{rest: w.rest}
	if err := week.weekdays(); err != nil {
		return err
	}
	for _, word := range w.rest[:len(w.rest)-len(week.rest)] {
		if allDays[word] != 0 {
			return fmt.Errorf("%q are several days: name them", clip(word))
		}
	}
	w.rest = week.rest
	for _, n := range list {
		if n > 5 {
			return fmt.Errorf("no month has %d of a weekday", n)
		}
		for d := time.Sunday; d <= time.Saturday; d++ {
			if week.rule.Weekdays&(1<<d) != 0 {
				w.rule.Nth = append(w.rule.Nth, NthWeekday{n, d})
			}
		}
	}
	return nil
}

// months parses the words that follow "of".
func (w *words) months() error {
	if w.rule.Freq != Monthly {
		return fmt.Errorf("of which month is for a day of it")
	}
	w.monthly = true
	if w.take("the") || w.take("each") || w.take("every") {
		if !w.take("month") {
			return fmt.Errorf("%q: want the month", clip(w.next()))
		}
		return nil
	}
	for again := true; again; again = w.more() {
		m, ok := monthOfWord(w.next())
		if !ok {
			return fmt.Errorf("%q is no month", clip(w.next()))
		}
		w.rule.Months |= 1 << m
		w.rest = w.rest[1:]
	}
	return nil
}

// anchor parses the words that follow "from": the first day.
func (w *words) anchor() error {
	t, err := time.Parse(time.DateOnly, w.next())
	if err != nil || t.Unix() < int64(aLeapYear) || Wall(t.Unix()) >= ruleEnd {
		return fmt.Errorf("from %q is no date, as 2026-01-04", clip(w.next()))
	}
	w.anchored, w.rule.Start, w.rest = true, Wall(t.Unix()), w.rest[1:]
	return nil
}

// atTime reports whether a time of the day is next.
func (w *words) atTime() bool { return strings.Contains(w.next(), ":") }

// times parses times of the day.
func (w *words) times() error {
	for again := true; again; again = w.more() {
		at, err := parseClock(w.next())
		if err != nil || at >= day {
			return fmt.Errorf("%q is no time of the day, as 02:00", clip(w.next()))
		}
		w.rule.Times = append(w.rule.Times, at)
		w.rest = w.rest[1:]
	}
	slices.Sort(w.rule.Times)
	w.rule.Times = slices.Compact(w.rule.Times)
	return nil
}

// check checks the rule as a whole: "every second week" must name the first week.
func (w *words) check() error {
	if !w.interval {
		return nil
	}
	if !w.anchored {
		return fmt.Errorf("nobody knows which is the first: say the day on which it comes first, " +
			"as \"from 2026-01-04\"")
	}
	if d := w.rule.Start.weekday(); w.rule.Weekdays != 0 && w.rule.Weekdays&(1<<d) == 0 {
		return fmt.Errorf("from %s is a %s: say a day on which it comes, so that it is clear which week "+
			"is the first", w.rule.Start.String()[:len(time.DateOnly)], d)
	}
	return nil
}

// surpriseInWords reports months without such a day.
func (r *Rule) surpriseInWords(text string) []string {
	for _, n := range r.Nth {
		if n.N == 5 {
			return []string{fmt.Sprintf("%q: not each month has a fifth %s: the others are left out; the "+
				"last one of each month is \"last %s\"", text, n.Day, n.Day)}
		}
	}
	for _, n := range r.MonthDays {
		if n > 28 {
			return []string{fmt.Sprintf("%q: not each month has %d days: the others are left out; the "+
				"last day of each month is \"last day\"", text, n)}
		}
	}
	return nil
}

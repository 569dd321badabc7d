package windows

import (
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Recurrence is a rule for recurring times: cron text of five fields (minute, hour, day of the
// month, month, weekday) or six (second first), as readings of a clock; or a period of elapsed
// time. If both the day of the month and the weekday are given, either is enough; but if one of
// them begins with "*", as "*/2", both must match, as in cron(8) of Debian. A recurrence can also
// be words, as "first Sunday 02:00".
//
// The zero value has no times.
type Recurrence struct {
	text  string
	every time.Duration // elapsed time; if set, the rest is not used
	words *Rule         // the meaning of a text in words; if set, the rest is not used

	second, minute, hour, dayOf, month, weekday uint64 // a bit for each value
}

// starBit marks an open field of cron text: "*".
const starBit = 1 << 63

// textMax bounds cron text, in bytes: a longer text was put there by mistake.
const textMax = 200

// aLeapYear is the start of a search for any time of a recurrence.
const aLeapYear Wall = 946_684_800 // 2000-01-01

// everyLeast is the shortest period of @every.
const everyLeast = time.Second

// A field is one field of cron text.
type field struct {
	name   string
	option cron.ParseOption
	size   int // how many values the field has
	hint   string
}

var fields = [...]field{
	{"second", cron.Second, 60, "0 to 59"},
	{"minute", cron.Minute, 60, "0 to 59"},
	{"hour", cron.Hour, 24, "0 to 23"},
	{"day of the month", cron.Dom, 31, "1 to 31"},
	{"month", cron.Month, 12, "1 to 12, or JAN to DEC"},
	{"weekday", cron.Dow, 7, "0 (Sunday) to 6, or SUN to SAT"},
}

// byName holds the recurrences that have a name.
var byName = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
	"@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// ParseRecurrence reads cron text, a name as @daily, "@every 90s", or words as "first Sunday
// 02:00". The error reports each wrong field.
func ParseRecurrence(text string) (Recurrence, error) {
	if len(text) > textMax {
		return Recurrence{}, fmt.Errorf("cron text of %d characters: at most %d", len(text), textMax)
	}
	r := Recurrence{text: strings.Join(strings.Fields(text), " ")}
	if period, ok := strings.CutPrefix(r.text, "@every "); ok {
		d, err := time.ParseDuration(period)
		if err != nil || d < everyLeast || d%time.Second != 0 {
			return Recurrence{}, fmt.Errorf("@every %q: want whole seconds, as 90s or 1h30m",
				clip(period))
		}
		r.every = d
		return r, nil
	}
	if inWords(r.text) {
		var err error
		r.words, err = parseWords(r.text)
		return r, err
	}
	full := r.text
	if name, ok := byName[full]; ok {
		full = name
	}
	if err := checkShape(full); err != nil {
		return Recurrence{}, err
	}
	parts := strings.Fields(full)
	if len(parts) == len(fields)-1 {
		parts = append([]string{"0"}, parts...)
	}
	if err := r.read(parts); err != nil {
		return Recurrence{}, err
	}
	if _, ok := first(r.walls(aLeapYear)); !ok {
		return Recurrence{}, fmt.Errorf("%q never comes: no such day is in the calendar", r.text)
	}
	return r, nil
}

func checkShape(text string) error {
	n := len(strings.Fields(text))
	switch {
	case strings.Contains(text, "TZ="):
		return fmt.Errorf("%q: the zone is a field of its own, not part of the cron text", clip(text))
	case strings.HasPrefix(text, "@"):
		return fmt.Errorf("%q: want @hourly, @daily, @weekly, @monthly, @yearly or @every 90s",
			clip(text))
	case n != len(fields) && n != len(fields)-1:
		return fmt.Errorf("%q has %d fields: want five (minute, hour, day of the month, month, "+
			"weekday) as \"0 2 * * SUN\", six with the second first, or words as \"first Sunday 02:00\"",
			clip(text), n)
	}
	return nil
}

// read reads the six fields one by one, so that an error can name the field.
func (r *Recurrence) read(parts []string) error {
	into := [...]*uint64{&r.second, &r.minute, &r.hour, &r.dayOf, &r.month, &r.weekday}
	var errs []error
	for i, f := range fields {
		set, err := f.parse(parts[i])
		if err != nil {
			errs = append(errs, err)
			continue
		}
		*into[i] = set
	}
	return errors.Join(errs...)
}

func (f field) parse(text string) (set uint64, err error) {
	wrong := fmt.Errorf("%s %q: want %s, with , - / and *", f.name, clip(text), f.hint)
	// The library panics at some texts, and accepts a step that is longer than the field.
	defer func() {
		if recover() != nil {
			set, err = 0, wrong
		}
	}()
	for part := range strings.SplitSeq(text, ",") {
		_, step, ok := strings.Cut(part, "/")
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(step); err != nil || n < 1 || n >= f.size {
			return 0, fmt.Errorf("%s %q: a step of 1 to %d", f.name, clip(text), f.size-1)
		}
	}
	schedule, err := cron.NewParser(f.option).Parse(text)
	if err != nil {
		return 0, wrong
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return 0, wrong
	}
	if set = f.of(spec); set&^starBit == 0 {
		return 0, wrong // an empty "," has no value, and the library accepts it
	}
	if (f.option == cron.Dom || f.option == cron.Dow) && strings.HasPrefix(text, "*") {
		set |= starBit // the library takes "*/2" for no star
	}
	return set, nil
}

func (f field) of(s *cron.SpecSchedule) uint64 {
	switch f.option {
	case cron.Second:
		return s.Second
	case cron.Minute:
		return s.Minute
	case cron.Hour:
		return s.Hour
	case cron.Dom:
		return s.Dom
	case cron.Month:
		return s.Month
	}
	return s.Dow
}

// String returns the text from which the recurrence was read.
func (r Recurrence) String() string { return r.text }

// Every returns the period of a recurrence by elapsed time, or 0 if it goes by the clock.
func (r Recurrence) Every() time.Duration { return r.every }

// Times yields the instants of the recurrence from from on, in order and each once. The sequence
// ends if the calendar has no further time for eight years.
//
// If the hour is "*", the author means each hour that passes, as in cron: a reading in a gap is
// left out, and a reading in a fold occurs twice. The policy is for all other recurrences.
func (r Recurrence) Times(z Zone, from time.Time, p Policy) iter.Seq[time.Time] {
	switch {
	case r.every > 0:
		return r.periods(from)
	case r.hour&starBit != 0:
		return r.hourly(z, from)
	}
	return func(yield func(time.Time) bool) {
		var last time.Time
		for w := range r.walls(z.readingsFrom(from)) {
			t, ok := z.Instant(w, p)
			if !ok || t.Before(from) || t.Equal(last) {
				continue
			}
			if last = t; !yield(t) {
				return
			}
		}
	}
}

// periods yields multiples of the period since 1970, so that all servers agree on them.
func (r Recurrence) periods(from time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		period := int64(r.every / time.Second)
		at := from.Unix()
		if unix(at).Before(from) {
			at++
		}
		if rest := ((at % period) + period) % period; rest != 0 {
			at += period - rest
		}
		for ; yield(unix(at)); at += period {
		}
	}
}

// hourly yields the instants of a recurrence at each hour, span by span of the zone.
func (r Recurrence) hourly(z Zone, from time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		start := from.Unix()
		if unix(start).Before(from) {
			start++
		}
		for s := z.at(start); ; s, start = z.at(s.to), s.to {
			end := Wall(never)
			if s.to < never {
				end = Wall(s.to + s.offset)
			}
			for w := range r.walls(Wall(start + s.offset)) {
				if w >= end {
					break
				}
				if !yield(unix(int64(w) - s.offset)) {
					return
				}
			}
			if s.to >= never {
				return
			}
		}
	}
}

// walls yields the readings from from on. It ends if there is none for longer than the greatest
// distance between two 29ths of February.
func (r Recurrence) walls(from Wall) iter.Seq[Wall] {
	const horizon = (8*366 + 1) * day
	if r.words != nil {
		return r.words.walls(from)
	}
	return func(yield func(Wall) bool) {
		last := from
		for d := from.midnight(); d-last < horizon; d += day {
			if !r.on(d) {
				continue
			}
			last = d
			for h := range ones(r.hour) {
				for m := range ones(r.minute) {
					for s := range ones(r.second) {
						if w := d + Wall(h*3600+m*60+s); w >= from && !yield(w) {
							return
						}
					}
				}
			}
		}
	}
}

// on reports whether the recurrence has times on the day that begins at d.
func (r Recurrence) on(d Wall) bool {
	weekday := r.weekday&(1<<d.weekday()) != 0
	if r.dayOf&starBit != 0 && !weekday {
		return false // the common case needs no calendar
	}
	_, month, dayOf := d.date()
	if r.month&(1<<month) == 0 {
		return false
	}
	inMonth := r.dayOf&(1<<dayOf) != 0
	if (r.dayOf|r.weekday)&starBit != 0 {
		return inMonth && weekday
	}
	return inMonth || weekday
}

// timesADay returns how many times the recurrence has on each of its days.
func (r Recurrence) timesADay() int {
	if r.words != nil {
		return len(r.words.Times)
	}
	n := 1
	for _, set := range []uint64{r.second, r.minute, r.hour} {
		n *= bits.OnesCount64(set &^ starBit)
	}
	return n
}

// ones yields the positions of the bits of a field, without the star.
func ones(set uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for set &^= starBit; set != 0; set &= set - 1 {
			if !yield(bits.TrailingZeros64(set)) {
				return
			}
		}
	}
}

func first[T any](seq iter.Seq[T]) (T, bool) {
	for v := range seq {
		return v, true
	}
	var none T
	return none, false
}

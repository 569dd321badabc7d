package windows

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"iter"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Schedule says when a recurring task is due.
type Schedule struct {
	Name   string
	Times  Recurrence
	Zone   Zone
	Policy Policy
	// hosts begin within so long after the tick, each host always at the same offset
	Jitter time.Duration
	Missed Missed
	Except []Days // days without a tick
}

// Missed says how to treat ticks that passed while no server could fire them.
type Missed string

// The ways to treat missed ticks.
const (
	MissedOnce Missed = "once" // fire the latest of them, now
	MissedSkip Missed = "skip" // fire none
	MissedAll  Missed = "all"  // fire each, up to ticksMax
)

// Late is the longest delay after which a tick still counts as fired on time. It allows for a
// change of the leader, and the leader's first look.
const Late = 10 * time.Second

// ticksMax bounds the ticks that are fired at once after a long break.
const ticksMax = 1000

// Firing says which ticks of a schedule are fired now.
type Firing struct {
	Ticks   []time.Time // in order
	Skipped int         // missed ticks that are not fired
	Next    time.Time   // the first future tick; zero: there is none
}

// Fire decides which ticks after the last handled one are fired at now. It depends on its
// arguments only, so two leaders get the same ticks.
func (s Schedule) Fire(last, now time.Time) Firing {
	var f Firing
	due := make([]time.Time, 0, 1)
	for t := range s.Ticks(last.Add(1)) {
		if t.After(now) {
			f.Next = t
			break
		}
		if len(due) == ticksMax {
			due = due[1:]
			f.Skipped++
		}
		due = append(due, t)
	}
	if s.Missed == MissedAll {
		f.Ticks = due
		return f
	}
	for i, t := range due {
		onTime := now.Sub(t) <= Late
		if onTime || s.Missed != MissedSkip && i == len(due)-1 {
			f.Ticks = append(f.Ticks, t)
			continue
		}
		f.Skipped++
	}
	return f
}

// Ticks yields the ticks from from on.
func (s Schedule) Ticks(from time.Time) iter.Seq[time.Time] {
	if len(s.Except) == 0 {
		return s.Times.Times(s.Zone, from, s.Policy)
	}
	return func(yield func(time.Time) bool) {
		for s.ticksUpToExcept(&from, yield) {
		}
	}
}

// ticksUpToExcept yields ticks up to the next days that are left out, and sets from behind these
// days, so that "@every 1s" need not count the seconds of a year that is left out. It returns
// false if there is no further tick.
func (s Schedule) ticksUpToExcept(from *time.Time, yield func(time.Time) bool) bool {
	for t := range s.Times.Times(s.Zone, *from, s.Policy) {
		w := s.Zone.Wall(t)
		if d, out := touching(s.Except, w, w+1); out {
			*from = later(unix(s.Zone.resolve(d.after()).first), t.Add(time.Second))
			return true
		}
		if !yield(t) {
			return false
		}
	}
	return false
}

// Offset returns the delay of a schedule after a tick on a host: always the same for a host, from
// 0 to the jitter, and spread over the hosts.
func (s Schedule) Offset(host string) time.Duration {
	if s.Jitter <= 0 {
		return 0
	}
	return time.Duration(hash(s.Name, host) % uint64(s.Jitter))
}

// hashed matches "H", "H/15", "H(0-7)" and "H(0-29)/10" in a field of cron text.
var hashed = regexp.MustCompile(`^H(?:\((\d{1,2})-(\d{1,2})\))?(?:/(\d{1,2}))?$`)

// ParseScheduleTimes reads words, or cron text in which H stands for a value that is computed from
// the schedule's name. A schedule always gets the same value, and other schedules get other
// values, so that not all daily schedules begin at midnight.
func ParseScheduleTimes(name, text string) (Recurrence, error) {
	parts := strings.Fields(text)
	fits := len(parts) == len(fields) || len(parts) == len(fields)-1
	if inWords(text) || !strings.Contains(text, "H") || !fits {
		return ParseRecurrence(text)
	}
	skipped := len(fields) - len(parts)
	for i := range parts {
		f := fields[i+skipped]
		if !strings.HasPrefix(parts[i], "H") {
			continue
		}
		part, err := f.hashed(name, parts[i])
		if err != nil {
			return Recurrence{}, err
		}
		parts[i] = part
	}
	r, err := ParseRecurrence(strings.Join(parts, " "))
	if err != nil {
		return Recurrence{}, fmt.Errorf("%q means: %w", clip(text), err)
	}
	return r, nil
}

// hashed replaces H by a value, or by a step from a value.
func (f field) hashed(name, text string) (string, error) {
	m := hashed.FindStringSubmatch(text)
	low, high := f.bounds()
	if m == nil {
		return "", fmt.Errorf("%s %q: want H, H/n, H(a-b) or H(a-b)/n", f.name, clip(text))
	}
	if m[1] != "" {
		a, _ := strconv.Atoi(m[1]) // two digits: no error is possible
		b, _ := strconv.Atoi(m[2])
		if a < low || b > high || a > b {
			return "", fmt.Errorf("%s %q: want a range within %d to %d", f.name, clip(text), low, high)
		}
		low, high = a, b
	}
	size := high - low + 1
	if m[3] == "" {
		return strconv.Itoa(low + int(hash(name, f.name)%uint64(size))), nil
	}
	step, _ := strconv.Atoi(m[3])
	if step < 1 || step > size {
		return "", fmt.Errorf("%s %q: a step of 1 to %d", f.name, clip(text), size)
	}
	return fmt.Sprintf("%d-%d/%d", low+int(hash(name, f.name)%uint64(step)), high, step), nil
}

// bounds returns the values that H may stand for. For the day of the month it returns the days
// that all months have.
func (f field) bounds() (low, high int) {
	switch f.size {
	case 31:
		return 1, 28
	case 12:
		return 1, 12
	}
	return 0, f.size - 1
}

func hash(parts ...string) uint64 {
	h := fnv.New64a()
	var size [4]byte
	for _, p := range parts {
		binary.LittleEndian.PutUint32(size[:], uint32(len(p)))
		h.Write(size[:])
		h.Write([]byte(p))
	}
	// The low bits of FNV are poor for short texts: fold the high ones in.
	sum := h.Sum64()
	return sum ^ sum>>32
}

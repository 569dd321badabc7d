package windows

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"
	"unicode"

	"muster/internal/wording"
)

// Zone holds the rules for the clocks of a place. The zero value is UTC.
type Zone struct {
	name  string
	rules rules // nil: UTC
}

// rules return the offset from UTC. Times are in seconds of Unix.
type rules interface {
	at(unix int64) span
}

// A span is a time in which the offset of a zone does not change.
type span struct {
	from, to int64 // first second, and the first one after it
	offset   int64 // local time minus UTC, in seconds
}

// The ends of time, for spans without an end. An offset can be added to them without overflow.
const (
	always = math.MinInt64 / 4
	never  = math.MaxInt64 / 4
)

// LoadZone returns the zone with an IANA name, such as Europe/Zurich. It refuses abbreviations
// such as CEST, and Local, because their meaning differs from machine to machine.
func LoadZone(name string) (Zone, error) {
	if name == "UTC" {
		return Zone{name: name}, nil
	}
	if name == "" || name == "Local" || !strings.Contains(name, "/") {
		return Zone{}, fmt.Errorf("zone %q: want UTC or an IANA name as Europe/Zurich", clip(name))
	}
	if z, ok := loaded.Load(name); ok {
		return z.(Zone), nil
	}
	loc, err := loadLocation(name)
	if err != nil {
		return Zone{}, fmt.Errorf("zone %q is not known: want UTC or an IANA name as Europe/Zurich",
			clip(name))
	}
	z := Zone{name: name, rules: newIANA(loc)}
	loaded.Store(name, z)
	return z, nil
}

// loaded caches zones by name. There are a few hundred at most, and calendars name them often.
var loaded sync.Map

// String returns the name of the zone.
func (z Zone) String() string {
	if z.rules == nil {
		return "UTC"
	}
	return z.name
}

// Wall returns the reading of the zone's clocks at an instant.
func (z Zone) Wall(t time.Time) Wall {
	unix := t.Unix()
	return Wall(unix + z.at(unix).offset)
}

// Location returns a time.Location for printing: an instant in it reads as on the clocks of the
// zone. Its name is the abbreviation in force at t, as far as one is known.
func (z Zone) Location(t time.Time) *time.Location {
	switch r := z.rules.(type) {
	case nil:
		return time.UTC
	case iana:
		return r.loc
	}
	return time.FixedZone(z.name, int(z.at(t.Unix()).offset))
}

func (z Zone) at(unix int64) span {
	if z.rules == nil {
		return span{from: always, to: never}
	}
	return z.rules.at(unix)
}

// iana holds the rules of the time zone database. It keeps a table of the years that matter,
// because a look-up in the database takes longer than all other steps here together.
type iana struct {
	loc  *time.Location
	near table // the spans up to nearEnd
}

// The years of the table.
var (
	nearFrom = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	nearEnd  = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

func newIANA(loc *time.Location) iana {
	z := iana{loc: loc}
	for at := nearFrom; at < nearEnd; {
		s := z.lookUp(at)
		at = s.to
		if n := len(z.near); n > 0 && z.near[n-1].offset == s.offset {
			z.near[n-1].to = s.to
			continue
		}
		z.near = append(z.near, s)
	}
	return z
}

func (z iana) at(unix int64) span {
	if unix < nearFrom || unix >= nearEnd {
		return z.lookUp(unix)
	}
	return z.near.at(unix)
}

func (z iana) lookUp(unix int64) span {
	t := time.Unix(unix, 0).In(z.loc)
	_, offset := t.Zone()
	s := span{from: always, to: never, offset: int64(offset)}
	from, to := t.ZoneBounds()
	if !from.IsZero() {
		s.from = from.Unix()
	}
	if !to.IsZero() {
		s.to = to.Unix()
	}
	// On the last day of a leap year of the far future the library returns a span that is over by
	// then, because it counts 365 days for each year.
	if s.to <= unix {
		s.to = unix - unix%day + day
	}
	return s
}

// reach exceeds any offset: 14 hours east, 12 hours west, and the day that a zone leaves out when
// it crosses the date line.
const reach = 26 * 3600

// readingsFrom returns the first reading that may mean an instant from t on: the reading of t.
// Near a change of the clocks it may be an earlier one.
func (z Zone) readingsFrom(t time.Time) Wall {
	unix := t.Unix()
	s := z.at(unix)
	w := Wall(unix + s.offset)
	if s.from < unix && s.to > unix+2*reach {
		return w
	}
	return w - reach
}

// Policy says how to treat readings that do not occur, and readings that occur twice. The zero
// value is the default.
type Policy struct {
	Gap  Gap
	Fold Fold
}

// Gap says how to treat a reading in an hour that is left out.
type Gap int

// The ways to treat a gap.
const (
	GapFirst Gap = iota // the first instant after it
	GapSkip             // no instant
)

// Fold says how to treat a reading in an hour that occurs twice.
type Fold int

// The ways to treat a fold.
const (
	FoldFirst  Fold = iota // the first of the two
	FoldSecond             // the second of the two
)

// Instant returns the instant at which the clocks of the zone read w. It returns false if they
// never do and the policy is to skip that.
func (z Zone) Instant(w Wall, p Policy) (time.Time, bool) {
	r := z.resolve(w)
	switch {
	case r.times == 0 && p.Gap == GapSkip:
		return time.Time{}, false
	case r.times > 1 && p.Fold == FoldSecond:
		return unix(r.last), true
	}
	return unix(r.first), true
}

// readings holds the instants at which a zone's clocks show a reading.
type readings struct {
	times int   // 0 in a gap, 2 in a fold
	first int64 // in a gap: the end of the gap
	last  int64
}

// resolve looks at each span that may contain the reading. The clocks change between two spans: a
// reading in both occurs twice, a reading in neither does not occur.
func (z Zone) resolve(w Wall) readings {
	var r readings
	s := z.at(int64(w) - reach)
	for {
		at := int64(w) - s.offset
		if s.from <= at && at < s.to {
			if r.times == 0 {
				r.first = at
			}
			r.last = at
			r.times++
		}
		if s.to > int64(w)+reach {
			return r
		}
		next := z.at(s.to)
		if r.times == 0 && s.to+s.offset <= int64(w) && int64(w) < s.to+next.offset {
			r.first, r.last = s.to, s.to
		}
		s = next
	}
}

func unix(seconds int64) time.Time { return time.Unix(seconds, 0).UTC() }

// clip shortens foreign text for an error.
func clip(s string) string { return wording.Clip(s) }

// word returns the part of an unknown key that a message may repeat: its beginning, as far as it
// consists of letters, digits, '-' and '_'. The rest is left out because the file may be the wrong
// one, with a secret in it.
func word(s string) string {
	const most = 40
	end := strings.IndexFunc(s, func(r rune) bool {
		return r != '-' && r != '_' && (r > 'z' || !unicode.IsLetter(r) && !unicode.IsDigit(r))
	})
	if end < 0 {
		end = len(s)
	}
	if len(s) <= 3 {
		return s
	}
	if end = min(end, most); end < len(s) {
		return s[:end] + "…"
	}
	return s
}

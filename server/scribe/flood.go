package scribe

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"muster/audit"
)

// A stranger decides how often somebody is refused, and must not fill the disk. So these bound the
// entries of refusals in a minute that say each who it was: those of logins, and those of requests.
const (
	loginLines   = 10
	requestLines = 60
)

// floodKinds bounds the different refusals of a minute that are counted apart.
const floodKinds = 50

// flood turns many refusals into few entries: the first of a minute are single ones, the others
// are counted, and their numbers are entries when the minute is over. So a minute has at most so
// many entries, floodKinds of numbers, and one for the rest.
type flood struct {
	now  func() time.Time
	most int // single entries of a minute

	mu    sync.Mutex
	since time.Time
	lines int
	more  map[refusal]int64
}

// refusal is a kind of refusal that is counted.
type refusal struct{ verb, object string }

// other stands for all kinds behind the bound.
var other = refusal{"refused", "others"}

// add takes a refusal, and returns the entries that are to be written now.
func (f *flood) add(d audit.Draft) []audit.Draft {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.over()
	if f.lines++; f.lines <= f.most {
		return append(out, d)
	}
	if f.more == nil {
		f.more = map[refusal]int64{}
	}
	kind := refusal{d.Entry.Verb, d.Entry.Object}
	if _, known := f.more[kind]; !known && len(f.more) >= floodKinds {
		kind = other
	}
	f.more[kind]++
	return out
}

// rest returns the numbers of a minute that is over.
func (f *flood) rest() []audit.Draft {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over()
}

func (f *flood) over() (out []audit.Draft) {
	now := f.now()
	if now.Sub(f.since) < time.Minute {
		return nil
	}
	for kind, n := range f.more {
		out = append(out, audit.Draft{Entry: audit.Entry{Kind: audit.KindRefused, Verb: kind.verb,
			Object: kind.object, Times: n, End: &audit.End{Result: audit.Refused}}})
	}
	slices.SortFunc(out, func(a, b audit.Draft) int {
		return cmp.Or(cmp.Compare(a.Entry.Verb, b.Entry.Verb),
			cmp.Compare(a.Entry.Object, b.Entry.Object))
	})
	f.since, f.lines, f.more = now, 0, nil
	return out
}

// Refused writes that a request of somebody who was let in had no effect: single entries up to a
// bound, and numbers behind it.
func (s *Scribe) Refused(d audit.Draft) { s.refuse(&s.requests, d) }

func (s *Scribe) refuse(f *flood, d audit.Draft) {
	d.Entry.Kind = audit.KindRefused
	if d.Entry.End == nil {
		d.Entry.End = &audit.End{Result: audit.Refused}
	}
	for _, one := range f.add(d) {
		s.Keep(one)
	}
}

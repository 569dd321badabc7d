package windows

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"muster/internal/ordered"
)

// Seat is a host that waits for its work.
type Seat struct {
	Place
	Zone  string        // zone whose workers do the work
	Group string        // redundancy group, in which one host at a time is worked on; empty: none
	From  time.Time     // the work does not begin before
	Takes time.Duration // estimated time of the work there
}

// Fitting says when the work on a host can be done.
type Fitting struct {
	Due   time.Time // the first opening, or From; zero: there is none
	Start time.Time // when the work starts if nothing else runs; zero: not within the search
	In    Opening   // the opening in which it starts
	Why   string    // why there is no opening
}

// looksMax bounds how many openings of a host are tried. An opening that is full of earlier hosts
// is no turn for the host.
const looksMax = 60

// Fit computes when each of some hosts can be worked on. slots is the number of jobs that the
// workers of a zone do at a time; a zone that is not in it has enough for all. The result assumes
// that nothing else runs: jobs take as long as estimated, and each begins as soon as a slot is
// free, in the order of the seats.
func (b *Book) Fit(seats []Seat, w Work, slots map[string]int) []Fitting {
	f := fitting{book: b, work: w, slots: map[string]*ordered.Heap[time.Time]{},
		groups:   map[string]time.Time{},
		openings: map[openingKey][]Opening{}, out: make([]Fitting, len(seats)), seats: seats}
	for zone, n := range slots {
		if n > 0 {
			f.slots[zone] = ordered.NewHeap(make([]time.Time, n), time.Time.Compare)
		}
	}
	var turns []turn
	verdicts := map[verdictKey]Verdict{}
	for i, s := range seats {
		work := w
		work.Estimate = s.Takes
		key := verdictKey{openingKey{b.alike(s.Place), s.From}, s.Takes}
		v, known := verdicts[key]
		if !known {
			v = b.Admit(key.place, s.From, work)
			verdicts[key] = v
		}
		switch {
		case v.OK:
			f.out[i].Due = s.From
		case !v.Next.IsZero():
			f.out[i].Due = v.Next
		default:
			f.out[i].Why = v.Why
			continue
		}
		turns = append(turns, turn{at: f.out[i].Due, seat: i})
	}
	for f.turns = ordered.NewHeap(turns, turn.compare); f.turns.Len() > 0; {
		f.seat(f.turns.Pop())
	}
	return f.out
}

// fitting is the state of a computation of Fit.
type fitting struct {
	book     *Book
	work     Work
	seats    []Seat
	out      []Fitting
	slots    map[string]*ordered.Heap[time.Time] // by zone: when each slot becomes free
	groups   map[string]time.Time                // when the work on the group ends
	turns    *ordered.Heap[turn]                 // hosts without a turn, by the time that each wants
	openings map[openingKey][]Opening
}

// seat gives a host its turn, or moves it to its next opening.
func (f *fitting) seat(t turn) {
	s := f.seats[t.seat]
	at := t.at
	free := f.slots[s.Zone]
	if free != nil {
		at = later(at, free.First())
	}
	at = later(at, f.groups[s.Group])
	in, ok := Opening{Start: t.at}, true
	if f.work.Window {
		work := f.work
		work.Estimate = s.Takes
		in, ok = f.opening(s, t.at)
		if ok && !in.fits(at, work) {
			if t.looks++; t.looks == looksMax {
				return
			}
			if next, found := f.after(s, in.End); found {
				f.turns.Push(turn{at: next.Start, seat: t.seat, looks: t.looks})
			}
			return
		}
	}
	if !ok {
		return
	}
	f.out[t.seat].Start, f.out[t.seat].In = at, in
	if free != nil {
		free.Replace(at.Add(s.Takes))
	}
	if s.Group != "" {
		f.groups[s.Group] = at.Add(s.Takes)
	}
}

// opening returns the opening that is open for a host at t, or the next one and false.
func (f *fitting) opening(s Seat, t time.Time) (Opening, bool) {
	for o := range f.ahead(s) {
		if o.End.After(t) {
			return o, !o.Start.After(t)
		}
	}
	return Opening{}, false
}

// after returns the first opening for a host from t on that is long enough.
func (f *fitting) after(s Seat, t time.Time) (Opening, bool) {
	work := f.work
	work.Estimate = s.Takes
	for o := range f.ahead(s) {
		if !o.Start.Before(t) && o.fits(o.Start, work) {
			return o, true
		}
	}
	return Opening{}, false
}

// openingKey identifies hosts that have the same openings.
type openingKey struct {
	place Place
	from  time.Time
}

// verdictKey identifies hosts that get the same verdict.
type verdictKey struct {
	openingKey
	takes time.Duration
}

// ahead yields the openings of a host. Hosts that are alike share them.
func (f *fitting) ahead(s Seat) iter.Seq[Opening] {
	key := openingKey{f.book.alike(s.Place), s.From}
	list, ok := f.openings[key]
	if !ok {
		list = f.book.Openings(key.place, s.From, f.work, 2*looksMax)
		f.openings[key] = list
	}
	return slices.Values(list)
}

// alike returns the place without its host, if no window and no freeze is for that host alone: so
// the answer for many hosts is computed once.
func (b *Book) alike(p Place) Place {
	s := Scope{Host, p.Host}
	if len(b.windows[s]) == 0 && len(b.freezes[s]) == 0 {
		p.Host = ""
	}
	return p
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// A turn is a host that waits for its turn.
type turn struct {
	at    time.Time
	seat  int
	looks int // openings that were full
}

func (t turn) compare(other turn) int {
	return cmp.Or(t.at.Compare(other.at), cmp.Compare(t.seat, other.seat))
}

package windows

import (
	"cmp"
	"container/heap"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"time"
)

// Event is an event of an iCalendar file, with all its repetitions. They are kept as they were
// written; each answer computes them from the requested time on.
type Event struct {
	UID     string `json:"-"`
	Summary string `json:"-"`
	Zone    Zone   `json:"z"`

	Starts   []Wall      `json:"s,omitempty"` // listed one by one: DTSTART and RDATE, in order
	Instants []time.Time `json:"i,omitempty"` // RDATE on other clocks than the event's, in order
	Rules    []Rule      `json:"r,omitempty"`
	Except   []Wall      `json:"x,omitempty"` // readings that are left out, in order
	// days that are left out, by their first reading, in order
	NotOn []Wall `json:"n,omitempty"`

	// Length is elapsed time; for an event of whole days it counts by the clock.
	Length time.Duration `json:"l"`
	Days   bool          `json:"d,omitempty"`

	// Clock is the distance from the reading of the beginning to that of the end, if DTEND or a
	// DURATION in days gave the end. It differs from Length on a night on which the clocks change.
	Clock Wall `json:"c,omitempty"`
}

// hash is of all that makes up when the event is.
func (e Event) hash() string {
	b, err := json.Marshal([]any{e.Zone.String(), e.Starts, e.Instants, e.Rules, e.Except, e.NotOn,
		e.Length, e.Days, e.Clock})
	if err != nil {
		return "" // there is nothing in it that JSON does not know
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// excepted reports whether a reading is left out.
func (e Event) excepted(w Wall) bool {
	if _, found := slices.BinarySearch(e.Except, w); found {
		return true
	}
	_, found := slices.BinarySearch(e.NotOn, w.midnight())
	return found
}

// never reports whether all repetitions are left out.
func (e Event) never() bool {
	_, ok := e.walls(ruleStart).next()
	return !ok && !slices.ContainsFunc(e.Instants, func(at time.Time) bool {
		return !e.excepted(e.Zone.Wall(at))
	})
}

// ruleStart is earlier than all readings of rules.
const ruleStart = Wall(-62_135_596_800) // the year 1

// An eventWalk yields the readings of an event.
type eventWalk struct {
	event  *Event
	starts []Wall
	rules  []*ruleWalk
	heads  []Wall // next reading of each rule; unused where ended is true
	ended  []bool
	last   Wall
	begun  bool
}

// walls returns a walk over the readings from from on, each once.
func (e *Event) walls(from Wall) *eventWalk {
	i, _ := slices.BinarySearch(e.Starts, from)
	c := &eventWalk{event: e, starts: e.Starts[i:], rules: make([]*ruleWalk, len(e.Rules)),
		heads: make([]Wall, len(e.Rules)), ended: make([]bool, len(e.Rules))}
	for i := range e.Rules {
		c.rules[i] = e.Rules[i].from(from)
		c.step(i)
	}
	return c
}

func (c *eventWalk) step(rule int) {
	w, ok := c.rules[rule].next()
	c.heads[rule], c.ended[rule] = w, !ok
}

func (c *eventWalk) next() (Wall, bool) {
	for {
		w, from := Wall(0), -1
		if len(c.starts) > 0 {
			w, from = c.starts[0], len(c.rules)
		}
		for i := range c.rules {
			if !c.ended[i] && (from < 0 || c.heads[i] < w) {
				w, from = c.heads[i], i
			}
		}
		switch {
		case from < 0:
			return 0, false
		case from == len(c.rules):
			c.starts = c.starts[1:]
		default:
			c.step(from)
		}
		if c.begun && w == c.last || c.event.excepted(w) {
			continue
		}
		c.last, c.begun = w, true
		return w, true
	}
}

// A placing turns readings of an event into instants.
type placing struct {
	Policy
	freeze bool // the instants are for a freeze, else for work
}

// instant returns the instant of a reading. least is the first instant that any reading which is
// not before it can mean. For a reading in an hour that is left out, a freeze takes the first
// possible instant. Work follows RFC 5545 (§3.3.5), which uses the clocks as they were before.
func (p placing) instant(z Zone, w Wall) (at, least time.Time, ok bool) {
	r := z.resolve(w)
	at = unix(r.first)
	switch least = at; {
	case r.times == 0 && p.Gap == GapSkip:
		return at, least, false
	case r.times == 0 && !p.freeze:
		at = unix(int64(w) - z.at(r.first-1).offset)
	case r.times > 1 && p.Fold == FoldSecond:
		at = unix(r.last)
	}
	return at, least, true
}

// A beginWalk yields the beginnings of an event in order.
type beginWalk struct {
	event    *Event
	from     time.Time
	place    placing
	walls    *eventWalk
	instants []time.Time
	held     []begin   // in order; earlier ones may still come
	least    time.Time // no later reading begins before it
	over     bool      // no reading is left
	head     begin     // the first one, while the walk is in a heap
}

func (e *Event) begins(from time.Time, place placing) *beginWalk {
	i, _ := slices.BinarySearchFunc(e.Instants, from, time.Time.Compare)
	return &beginWalk{event: e, from: from, place: place, walls: e.walls(e.Zone.readingsFrom(from)),
		instants: e.Instants[i:]}
}

// next returns the next beginning, with its ends.
func (c *beginWalk) next() (begin, bool) {
	for !c.over && (len(c.held) == 0 || c.held[0].at.After(c.least)) {
		w, ok := c.walls.next()
		if !ok {
			c.over = true
			break
		}
		at, least, ok := c.place.instant(c.event.Zone, w)
		if c.least = least; ok && !at.Before(c.from) {
			c.hold(begin{at: at, wall: w})
		}
	}
	for len(c.instants) > 0 && (len(c.held) == 0 || c.held[0].at.After(c.instants[0])) {
		at := c.instants[0]
		c.instants = c.instants[1:]
		if w := c.event.Zone.Wall(at); !c.event.excepted(w) {
			c.hold(begin{at: at, wall: w})
		}
	}
	if len(c.held) == 0 {
		return begin{}, false
	}
	b := c.held[0]
	c.held = slices.Delete(c.held, 0, 1)
	b.end, b.latest = c.event.ends(b)
	return b, true
}

// hold inserts a beginning at its place.
func (c *beginWalk) hold(b begin) {
	i, _ := slices.BinarySearchFunc(c.held, b, func(a, b begin) int { return a.at.Compare(b.at) })
	c.held = slices.Insert(c.held, i, b)
}

// ends returns the first and the last instant that the end may mean, as elapsed time or as a
// reading. They differ when the clocks change. Work stops at the first, so that it never runs
// later than agreed; a freeze lasts to the last.
func (e *Event) ends(b begin) (first, last time.Time) {
	first = b.at.Add(e.Length)
	last = first
	span := e.Clock
	if r := e.Zone.resolve(b.wall); r.times == 0 { // RFC 5545 may put the beginning that late
		late := unix(int64(b.wall) - e.Zone.at(r.first-1).offset)
		last = later(last, late.Add(e.Length))
	}
	switch {
	case e.Days:
		r := e.Zone.resolve(b.wall + Wall(e.Length/time.Second))
		return unix(r.first), unix(r.last)
	case span == 0 && e.Zone.Wall(b.at) == b.wall:
		return first, last
	case span == 0: // the beginning was in a gap, and so was later than written
		span = Wall(e.Length / time.Second)
	}
	r := e.Zone.resolve(b.wall + span)
	read := unix(r.first)
	if !read.After(b.at) {
		read = unix(r.last) // it begins in the second of two equal hours
	}
	return earlier(first, read), later(last, unix(r.last))
}

func lengthOfEvents(events []Event) time.Duration {
	var most time.Duration
	for i := range events {
		most = max(most, events[i].Length+reach*time.Second)
	}
	return most
}

// eventBegins yields the beginnings of many events in order.
func eventBegins(events []Event, from time.Time, place placing) iter.Seq[begin] {
	return func(yield func(begin) bool) {
		walks := make(beginHeap, 0, len(events))
		for i := range events {
			c := events[i].begins(from, place)
			var ok bool
			if c.head, ok = c.next(); ok {
				walks = append(walks, c)
			}
		}
		for heap.Init(&walks); len(walks) > 0; {
			c := walks[0]
			if !yield(c.head) {
				return
			}
			var ok bool
			if c.head, ok = c.next(); !ok {
				heap.Pop(&walks)
				continue
			}
			heap.Fix(&walks, 0)
		}
	}
}

type beginHeap []*beginWalk

func (h beginHeap) Len() int { return len(h) }
func (h beginHeap) Less(i, j int) bool {
	a, b := h[i].head, h[j].head
	return cmp.Or(a.at.Compare(b.at), a.end.Compare(b.end)) < 0
}
func (h beginHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *beginHeap) Push(x any)   { *h = append(*h, x.(*beginWalk)) }

func (h *beginHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

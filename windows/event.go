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

// Event is one of an iCalendar file, with all its repetitions. They are kept as they were
// written, and worked out from the time on that somebody asks about.
type Event struct {
	UID     string `json:"-"`
	Summary string `json:"-"`
	Zone    Zone   `json:"z"`

	Starts   []Wall      `json:"s,omitempty"` // said one by one: DTSTART and RDATE, in order
	Instants []time.Time `json:"i,omitempty"` // RDATE on other clocks than those of the event, in order
	Rules    []Rule      `json:"r,omitempty"`
	Except   []Wall      `json:"x,omitempty"` // readings at which it is not, in order
	NotOn    []Wall      `json:"n,omitempty"` // days on which it is not, by their first reading, in order

	// Length is elapsed time; of an event of whole days it is by the clock.
	Length time.Duration `json:"l"`
	Days   bool          `json:"d,omitempty"`

	// Clock is from the reading of its beginning to that of its end, if DTEND gave one, or a
	// DURATION of days: on a night on which the clocks are set that is not Length.
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

// excepted tells whether the event is not at a reading.
func (e Event) excepted(w Wall) bool {
	if _, found := slices.BinarySearch(e.Except, w); found {
		return true
	}
	_, found := slices.BinarySearch(e.NotOn, w.midnight())
	return found
}

// never tells that all of its repetitions are excepted.
func (e Event) never() bool {
	_, ok := e.walls(ruleStart).next()
	return !ok && !slices.ContainsFunc(e.Instants, func(at time.Time) bool {
		return !e.excepted(e.Zone.Wall(at))
	})
}

// ruleStart is before all readings of rules.
const ruleStart = Wall(-62_135_596_800) // the year 1

// An eventWalk goes through the readings of an event.
type eventWalk struct {
	event  *Event
	starts []Wall
	rules  []*ruleWalk
	heads  []Wall // of the rules; -1 in ended
	ended  []bool
	last   Wall
	begun  bool
}

// walls goes through the readings from one on, each once.
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

// A placing says when the readings of an event are.
type placing struct {
	Policy
	freeze bool // it is for a freeze, else for work
}

// instant is when a reading is, and the first instant that any reading can mean that is not
// before it. Of a reading in an hour that is left out a freeze takes the first instant that
// may be meant. Work waits for what RFC 5545 (§3.3.5) says: it counts on the clocks as they
// were before.
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

// A beginWalk goes through the beginnings of an event, in their order.
type beginWalk struct {
	event    *Event
	from     time.Time
	place    placing
	walls    *eventWalk
	instants []time.Time
	held     []begin   // in order; others may come before them
	least    time.Time // no reading to come is before it
	over     bool      // no reading is to come
	head     begin     // the first one, while it is in a heap
}

func (e *Event) begins(from time.Time, place placing) *beginWalk {
	i, _ := slices.BinarySearchFunc(e.Instants, from, time.Time.Compare)
	return &beginWalk{event: e, from: from, place: place, walls: e.walls(e.Zone.readingsFrom(from)),
		instants: e.Instants[i:]}
}

// next is the next beginning, with its ends.
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

// hold puts a beginning into its place.
func (c *beginWalk) hold(b begin) {
	i, _ := slices.BinarySearchFunc(c.held, b, func(a, b begin) int { return a.at.Compare(b.at) })
	c.held = slices.Insert(c.held, i, b)
}

// ends are the first and the last of what the end may mean: a time that passes, or a
// reading. They differ where the clocks are set. Work stops at the first, so that it is
// never done later than was agreed; a freeze goes on to the last.
func (e *Event) ends(b begin) (first, last time.Time) {
	first = b.at.Add(e.Length)
	last = first
	span := e.Clock
	if r := e.Zone.resolve(b.wall); r.times == 0 { // it may begin as late as RFC 5545 says
		late := unix(int64(b.wall) - e.Zone.at(r.first-1).offset)
		last = later(last, late.Add(e.Length))
	}
	switch {
	case e.Days:
		r := e.Zone.resolve(b.wall + Wall(e.Length/time.Second))
		return unix(r.first), unix(r.last)
	case span == 0 && e.Zone.Wall(b.at) == b.wall:
		return first, last
	case span == 0: // the beginning was in a gap, and came late
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

// eventBegins are the beginnings of many events, in their order.
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

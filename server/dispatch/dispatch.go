package dispatch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/events"
	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
)

// A Firer does what is configured about an event. It is called again with the same event if it
// returned an error, or its server died meanwhile: then it must not do a thing twice. An event
// about which nothing is to be done is no error.
type Firer interface {
	Fire(ctx context.Context, e events.Event) (events.Outcome, error)
}

// Inbox keeps the events.
type Inbox interface {
	Turns(ctx context.Context) ([]string, error)
	Next(ctx context.Context, customer string, without ...string) (w inbox.Work, ok bool, err error)
	End(ctx context.Context, term int64, id string, to inbox.State, o events.Outcome) (bool, error)
	Tried(ctx context.Context, term int64, id, why string) (int, error)
	Turned(ctx context.Context, term int64, customer string) error
}

// Keeping drops events that ended long ago.
type Keeping interface {
	Tallies(ctx context.Context) ([]inbox.Tally, error)
	Trim(ctx context.Context, source string, before time.Time) (int, error)
}

// Term is the time for which this server has the duty.
type Term interface {
	Number() int64
	Trusted() bool
}

// Needs are the things that a dispatcher works with.
type Needs struct {
	Inbox Inbox
	Past  Keeping
	Fire  Firer // nil: nothing is configured about any event
	// Tell tells people of an event that was set aside.
	Tell func(ctx context.Context, e events.Event, state inbox.State, why string)
	Log  hclog.Logger
	Now  func() time.Time
}

const (
	// TurnEvents bounds the events of one turn of a customer.
	TurnEvents = 20
	// turnTime is the time after which a turn begins no further event.
	turnTime = 2 * time.Second
	// slots is the number of customers whose events are worked on at once.
	slots = 4
	// fireTime bounds the work on one event.
	fireTime = 30 * time.Second
	// idle is the time between two looks for events.
	idle = 100 * time.Millisecond
	// trimEvery is the time between two looks for events that ended long ago.
	trimEvery = time.Minute

	// triesMax is the number of tries after which an event is set aside.
	triesMax = 20
	pauseMin = time.Second
	pauseMax = time.Minute
)

// house is the customer of events that concern the whole house.
const house = ""

// Dispatcher works on events for one term of its duty.
type Dispatcher struct {
	Needs
	term Term

	busy    map[string]bool      // customers who have a turn
	rest    map[string]time.Time // customers without a turn until a time
	held    map[string]held      // by customer
	ended   chan turn
	served  bool // a customer has had a turn since the house had one
	trimmed time.Time
}

// turn is a turn that has ended.
type turn struct {
	customer string
	pause    time.Duration // before the next; 0: none
	held     held          // as it has left them
}

// held are the sources of a customer whose event failed, until the next try: those behind it in its
// source may need what it would have done, and wait. Those of other sources go on.
type held map[string]time.Time

// sources returns the sources that are held now.
func (h held) sources(now time.Time) (list []string) {
	for source, until := range h {
		if now.Before(until) {
			list = append(list, source)
		}
	}
	return list
}

// pause returns the time before a turn makes sense that finds only events of held sources.
func (h held) pause(now time.Time) time.Duration {
	wait := pauseMin
	for _, until := range h {
		if left := until.Sub(now); left > 0 {
			wait = min(wait, left)
		}
	}
	return wait
}

// New returns the dispatcher of a term.
func New(n Needs, t Term) *Dispatcher {
	return &Dispatcher{Needs: n, term: t, busy: map[string]bool{}, rest: map[string]time.Time{},
		held: map[string]held{}, ended: make(chan turn), served: true}
}

// Run works on events until ctx is done, and waits for the turns under way.
func (d *Dispatcher) Run(ctx context.Context) error {
	look := time.NewTicker(idle)
	defer look.Stop()
	defer func() {
		for len(d.busy) > 0 {
			d.end(<-d.ended)
		}
	}()
	for {
		if err := d.begin(ctx); err != nil && ctx.Err() == nil {
			d.Log.Warn("events wait", "error", err)
		}
		d.trim(ctx)
		select {
		case <-ctx.Done():
			return nil
		case t := <-d.ended:
			d.end(t)
		case <-look.C:
		}
	}
}

// begin begins the turns that may begin now.
func (d *Dispatcher) begin(ctx context.Context) error {
	if len(d.busy) == slots || d.busy[house] || !d.term.Trusted() {
		return nil
	}
	customers, err := d.Inbox.Turns(ctx)
	if err != nil {
		return err
	}
	ready := customers[:0]
	houseReady := false
	for _, c := range customers {
		switch {
		case d.busy[c] || d.Now().Before(d.rest[c]):
		case c == house:
			houseReady = true
		default:
			ready = append(ready, c)
		}
	}
	if houseReady && (d.served || len(ready) == 0) {
		// The house is alone in its turn, and goes before all others, but not twice in a row.
		if len(d.busy) == 0 {
			d.start(ctx, house)
		}
		return nil
	}
	for _, c := range ready[:min(len(ready), slots-len(d.busy))] {
		d.start(ctx, c)
	}
	return nil
}

func (d *Dispatcher) start(ctx context.Context, customer string) {
	d.busy[customer], d.served = true, customer != house
	kept := maps.Clone(d.held[customer]) // the turn works while others begin
	if kept == nil {
		kept = held{}
	}
	go func() {
		pause := d.turn(ctx, customer, kept)
		d.ended <- turn{customer, pause, kept}
	}()
}

func (d *Dispatcher) end(t turn) {
	delete(d.busy, t.customer)
	delete(d.rest, t.customer)
	delete(d.held, t.customer)
	if len(t.held.sources(d.Now())) > 0 {
		d.held[t.customer] = t.held
	}
	if t.pause > 0 {
		d.rest[t.customer] = d.Now().Add(t.pause)
	}
}

// turn works on events of a customer, in their order, until its bounds. An event that fails holds
// its source, or the customer if it changes how we work. It returns the time before the next turn
// of the customer.
func (d *Dispatcher) turn(ctx context.Context, customer string, held held) time.Duration {
	until := d.Now().Add(turnTime)
	var pause time.Duration
	for n := 0; n < TurnEvents && pause == 0 && d.Now().Before(until); n++ {
		if ctx.Err() != nil || !d.term.Trusted() {
			return 0
		}
		w, ok, err := d.Inbox.Next(ctx, customer, held.sources(d.Now())...)
		var wait time.Duration
		if err == nil && ok {
			wait, err = d.work(ctx, w)
		}
		if err != nil {
			return d.away(ctx, err)
		}
		if !ok {
			// Turned takes a customer without events out of the turns.
			if len(held.sources(d.Now())) > 0 {
				pause = held.pause(d.Now())
			}
			break
		}
		switch {
		case wait > 0 && w.Class == ingress.Management:
			pause = wait
		case wait > 0:
			held[w.Source] = d.Now().Add(wait)
		}
	}
	if err := d.Inbox.Turned(ctx, d.term.Number(), customer); err != nil {
		return d.away(ctx, err)
	}
	return pause
}

// away notes that Redis cannot be used, or that another server has the duty.
func (d *Dispatcher) away(ctx context.Context, err error) time.Duration {
	if ctx.Err() == nil && !errors.Is(err, queue.ErrDeposed) {
		d.Log.Warn("events wait", "error", err)
	}
	return pauseMin
}

// work brings an event to its end, or returns the time before the next try.
func (d *Dispatcher) work(ctx context.Context, w inbox.Work) (time.Duration, error) {
	if w.Doubt != nil {
		return 0, d.aside(ctx, w, inbox.Doubted, w.Doubt.Error())
	}
	o, err := d.fire(ctx, w.Event)
	if ctx.Err() != nil {
		return 0, ctx.Err() // nobody knows what it did: the next server tries again
	}
	if err == nil {
		_, err := d.Inbox.End(ctx, d.term.Number(), w.ID, inbox.Done, o)
		return 0, err
	}
	tries, bad := d.Inbox.Tried(ctx, d.term.Number(), w.ID, err.Error())
	if bad != nil {
		return 0, bad
	}
	if tries >= triesMax {
		return 0, d.aside(ctx, w, inbox.Stuck, err.Error())
	}
	d.Log.Warn("work on an event failed: it is tried again", "event", w.ID, "source", w.Source,
		"tries", tries, "error", err)
	return min(pauseMin<<min(tries-1, 10), pauseMax), nil
}

// aside ends an event about which nothing could be done, and tells people.
func (d *Dispatcher) aside(ctx context.Context, w inbox.Work, to inbox.State, why string) error {
	o := events.Outcome{Firings: []events.Firing{{Why: why}}}
	was, err := d.Inbox.End(ctx, d.term.Number(), w.ID, to, o)
	if err != nil || !was {
		return err
	}
	d.Log.Error("an event was set aside", "event", w.ID, "source", w.Source, "state", to, "error", why)
	if d.Tell != nil {
		d.Tell(ctx, w.Event, to, why)
	}
	return nil
}

// fire does what is configured about an event. The words of a sender must not end a server, so a
// panic is an error.
func (d *Dispatcher) fire(ctx context.Context, e events.Event) (o events.Outcome, err error) {
	if d.Fire == nil {
		return events.Outcome{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, fireTime)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			d.Log.Error("work on an event failed", "event", e.ID, "panic", fmt.Sprint(v), "stack",
				string(debug.Stack()))
			err = errors.New("a mistake in muster: its log says more")
		}
	}()
	return d.Fire.Fire(ctx, e)
}

// trim drops events that ended long ago.
func (d *Dispatcher) trim(ctx context.Context) {
	now := d.Now()
	if now.Sub(d.trimmed) < trimEvery {
		return
	}
	d.trimmed = now
	tallies, err := d.Past.Tallies(ctx)
	for _, t := range tallies {
		if err == nil {
			_, err = d.Past.Trim(ctx, t.Source, now.Add(-inbox.PastKept))
		}
	}
	if err != nil && ctx.Err() == nil {
		d.Log.Warn("past events are kept longer", "error", err)
	}
}

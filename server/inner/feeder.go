package inner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/events/inner"
	"muster/fleet"
	"muster/ingress"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/read"
)

// Box takes events, and keeps how far they are told.
type Box interface {
	Places(ctx context.Context) (inbox.Places, error)
	Feed(ctx context.Context, term int64, s inbox.Step) (int, error)
}

// Zones has what happens in zones.
type Zones interface {
	Zones(ctx context.Context) ([]string, error)
}

// Streams reads the events of zones.
type Streams interface {
	EventPage(ctx context.Context, zone, after string, most int) (read.EventPage, error)
}

// Tasks reads tasks. Its errors wrap queue.ErrNotFound if Redis has forgotten one.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Jobs reads the parts of tasks.
type Jobs interface {
	EachJob(ctx context.Context, id jobs.TaskID, from, most int,
		f func([]jobs.JobInfo) error) error
	JobsIn(ctx context.Context, zone string, ids []jobs.ID) ([]jobs.JobInfo, error)
}

// Facts reads what hosts reported.
type Facts interface {
	FactsMark(ctx context.Context) (string, error)
	Facts(ctx context.Context) (list map[string]jobs.HostFacts, mark string, err error)
}

// Versions reads versions of the inventory.
type Versions interface {
	Version(ctx context.Context) (string, error)
	Hosts(ctx context.Context, version string) (map[string]fleet.Host, error)
}

// Term is the time for which this server has the duty.
type Term interface {
	Number() int64
	Trusted() bool
}

// Needs are the things that a Feeder works with.
type Needs struct {
	Box      Box
	Zones    Zones
	Streams  Streams
	Tasks    Tasks
	Jobs     Jobs
	Facts    Facts
	Versions Versions
	// Wants returns what reports whether a trigger waits for events of a kind; nil: that is not
	// known now, so what happens must wait. Nothing is told for which no trigger waits.
	Wants func(context.Context) func(kind string) bool
	Log   hclog.Logger
	Now   func() time.Time
}

// Duty is the duty to tell muster's own events.
const Duty = inbox.FeedDuty

// every is the time between two looks for what happened.
const every = 500 * time.Millisecond

// Feeder tells events for one term of its duty.
type Feeder struct {
	Needs
	term   Term
	places *inbox.Places // nil: they must be read
	stock  stock
	diff   diff
	said   string // what was wrong at the last look
}

// stock has the hosts of the published inventory: they say whose an event is.
type stock struct {
	version string
	hosts   map[string]fleet.Host
}

// New returns the feeder of a term.
func New(n Needs, t Term) *Feeder { return &Feeder{Needs: n, term: t} }

// Run tells events until ctx is done.
func (f *Feeder) Run(ctx context.Context) error {
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		f.say(ctx, f.RunOnce(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
	}
}

// say logs once what is wrong, and when it is over.
func (f *Feeder) say(ctx context.Context, err error) {
	words := ""
	if err != nil {
		words = err.Error()
	}
	if ctx.Err() != nil || errors.Is(err, queue.ErrDeposed) || errors.Is(err, inbox.ErrMoved) {
		return
	}
	switch {
	case words != "" && words != f.said:
		f.Log.Warn("muster's own events wait: what happens stays where it is written", "error", words)
	case words == "" && f.said != "":
		f.Log.Info("muster's own events are told again")
	}
	f.said = words
}

// RunOnce tells all that happened since the last look.
func (f *Feeder) RunOnce(ctx context.Context) error {
	wants := f.Wants(ctx)
	if wants == nil || !f.term.Trusted() {
		return nil
	}
	if f.places == nil {
		p, err := f.Box.Places(ctx)
		if err != nil {
			return err
		}
		f.places = &p
	}
	zones, err := f.Zones.Zones(ctx)
	if err != nil {
		return err
	}
	if err := f.load(ctx, wants); err != nil {
		return err
	}
	var spoiled error
	for _, zone := range zones {
		err := f.stream(ctx, zone, wants)
		switch {
		case f.places != nil && queue.OneZone(err): // the other zones go on
			spoiled = errors.Join(spoiled, fmt.Errorf("zone %s: %w", zone, err))
		case err != nil:
			return err
		}
	}
	if err := f.step(ctx, map[string]string{begunPlace: "1"}, nil); err != nil {
		return err
	}
	if err := f.hosts(ctx, wants); err != nil {
		return err
	}
	return errors.Join(spoiled, f.facts(ctx, wants))
}

// begunPlace is there once all zones were looked at. The stream of a zone that comes later is told
// from its beginning.
const begunPlace = "begun"

// step tells events, and moves places. It does nothing if no place moves.
func (f *Feeder) step(ctx context.Context, at map[string]string, list []inner.Told) error {
	for name, to := range at {
		if f.places.At[name] == to {
			delete(at, name)
		}
	}
	if len(at) == 0 && len(list) == 0 {
		return nil
	}
	if !f.term.Trusted() {
		return errors.New("this server may have lost the duty")
	}
	s := inbox.Step{After: f.places.Steps, At: at, Bounds: ingress.Own().Bounds}
	for _, e := range list {
		s.Events = append(s.Events, inbox.Arrival{Event: e.Event, Class: e.Class, Bounds: s.Bounds})
	}
	_, err := f.Box.Feed(ctx, f.term.Number(), s)
	if err != nil {
		f.places = nil // nobody knows what was written
		return err
	}
	f.places.Steps++
	for name, to := range at {
		if f.places.At[name] = to; to == "" {
			delete(f.places.At, name)
		}
	}
	return nil
}

// load reads the hosts of the published inventory if it is another than before, and somebody waits
// for events.
func (f *Feeder) load(ctx context.Context, wants func(string) bool) error {
	if !f.any(wants, inner.Kinds()) {
		f.stock = stock{}
		return nil
	}
	version, err := f.Versions.Version(ctx)
	if err != nil || version == f.stock.version {
		return err
	}
	hosts, err := f.Versions.Hosts(ctx, version)
	if err == nil {
		f.stock = stock{version, hosts}
	}
	return err
}

// find looks for a host of the published inventory.
func (f *Feeder) find(name string) (fleet.Host, bool) {
	h, there := f.stock.hosts[name]
	return h, there
}

// any reports whether a trigger waits for one of some kinds.
func (f *Feeder) any(wants func(string) bool, kinds []string) bool {
	return slices.ContainsFunc(kinds, wants)
}

package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"muster/jobs"
	"muster/windows"
)

// Times is how a worker learns what is agreed about times.
type Times interface {
	// Agreed reads what is in force, unless it is the version that is known.
	Agreed(ctx context.Context, known int64) (jobs.Agreed, error)

	// Estimate reads how long a runbook takes. It is false if that is not known.
	Estimate(ctx context.Context, field string) (jobs.Estimate, bool, error)

	// Alert tells those who watch a zone of something that they should look at.
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

const (
	// agreedMax is how old what is agreed may be when something starts by it (design §8).
	agreedMax = 2 * time.Second

	// agreedEvery is how often it is read at most: many short jobs share one reading.
	agreedEvery = time.Second

	// estimateKeep is how long an estimate counts. It changes with each success, by little.
	estimateKeep = time.Minute
)

// agreed is what a worker knows of what is agreed. Its attempts share it. Nothing is
// read while nothing starts.
type agreed struct {
	Times
	clock func() time.Duration

	mu        sync.Mutex
	last      jobs.Agreed
	book      *windows.Book // of the last reading; nil: there was none
	sent      time.Duration // before the last reading, on the boot clock
	estimates map[string]estimated
}

type estimated struct {
	p90   time.Duration
	known bool
	read  time.Duration // on the boot clock
}

func newAgreed(d Doors) *agreed {
	return &agreed{Times: d.Times, clock: d.Clock, estimates: map[string]estimated{}}
}

// A reading is what is agreed, and what time it is by Redis.
type reading struct {
	book *windows.Book // nil: nothing was ever read
	now  time.Time     // the latest that it can be
	skew time.Duration // of this machine's clock
	err  error         // it is older than it may be, or cannot be read
}

// current is what is agreed now.
func (a *agreed) current(ctx context.Context) reading {
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.book == nil || a.clock()-a.sent >= agreedEvery {
		err = a.read(ctx)
	}
	r := reading{book: a.book, skew: a.last.Skew, now: a.last.Now.Time().Add(a.clock() - a.sent)}
	switch age := a.clock() - a.sent; {
	case a.book == nil:
		r.err = err
	case err != nil && age > agreedMax:
		r.err = fmt.Errorf("it was last read %s ago: %w", age.Round(time.Second), err)
	case age > agreedMax:
		r.err = fmt.Errorf("the answer took %s", age.Round(time.Second))
	}
	return r
}

func (a *agreed) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, agreedMax-agreedEvery/2)
	defer cancel()
	known := int64(-1)
	if a.book != nil {
		known = a.last.Version
	}
	sent := a.clock()
	next, err := a.Agreed(ctx, known)
	if err != nil {
		return err
	}
	if next.Table != nil {
		book, err := next.Table.Book()
		if err != nil {
			// It was read before it was kept: another version of muster reads otherwise.
			return fmt.Errorf("version %d cannot be read here: %w", next.Version, err)
		}
		a.book = book
	}
	a.last, a.sent = next, sent
	return nil
}

// estimate is how long a runbook takes by its last successes; 0: that is not known.
func (a *agreed) estimate(ctx context.Context, field string) (time.Duration, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, ok := a.estimates[field]
	if ok && a.clock()-e.read < estimateKeep {
		return e.p90, nil
	}
	ctx, cancel := context.WithTimeout(ctx, agreedMax)
	defer cancel()
	now := a.clock()
	is, known, err := a.Estimate(ctx, field)
	if err != nil {
		return 0, err
	}
	if !known {
		is.P90 = 0
	}
	if len(a.estimates) >= estimatesMax {
		clear(a.estimates)
	}
	a.estimates[field] = estimated{p90: is.P90, known: known, read: now}
	return is.P90, nil
}

// estimatesMax bounds how many estimates are kept.
const estimatesMax = 1000

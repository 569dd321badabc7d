// Package agreed keeps a copy of the timetable for all attempts of a worker: the windows, freezes
// and approvals in force. It asks for news before a step starts, and gives no answer that
// is older than [AgeMax].
//
// Floor 3: may import jobs, windows, worker/verdict.
package agreed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"muster/jobs"
	"muster/windows"
	"muster/worker/verdict"
)

// Times reads the timetable, and sends alerts about it.
type Times interface {
	// Agreed returns the version of the timetable in force, and the time.
	Agreed(ctx context.Context) (jobs.Agreed, error)

	// Excerpts reads the parts of the timetable for some scopes.
	Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error)

	// Estimate reads the expected time of a runbook. It returns false if there is none.
	Estimate(ctx context.Context, field string) (jobs.Estimate, bool, error)

	// Alert sends an alert to the people who watch a zone.
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

const (
	// AgeMax bounds the age of an answer by which a step may start (design §8).
	AgeMax = 2 * time.Second

	// agreedEvery is the least time between two questions: many short jobs share one answer.
	agreedEvery = time.Second

	// estimateKeep is the time for which an estimate counts. Each success changes it a little.
	estimateKeep = time.Minute
)

// Agreed keeps the last answer about the timetable. The attempts of a worker share it. It asks
// nothing while no step starts.
type Agreed struct {
	Times
	clock func() time.Duration

	// doubt holds why the last question had no answer; empty: it had one. Why reads it while
	// Current waits for an answer.
	doubt atomic.Value

	turn      chan struct{} // has room for one attempt, to which the fields below belong
	last      jobs.Agreed   // the last answer
	sent      time.Duration // the time before its question, on the boot clock
	asked     bool          // there was an answer
	known     known
	estimates map[string]estimated
}

type estimated struct {
	p90   time.Duration
	known bool
	read  time.Duration // on the boot clock
}

// New returns an Agreed that has read nothing yet.
func New(t Times, clock func() time.Duration) *Agreed {
	return &Agreed{Times: t, clock: clock, turn: make(chan struct{}, 1),
		estimates: map[string]estimated{}}
}

// known holds the excerpts of one version that were read.
type known struct {
	mark     string // of [windows.Timetable]
	excerpts map[windows.Scope]*windows.Excerpt
	all      *windows.Book // the whole timetable, if the queue keeps no excerpts
}

// book returns the timetable for some scopes; nil if it was not read.
func (k *known) book(scopes []windows.Scope) *windows.Book {
	if k.all != nil {
		return k.all
	}
	parts := make([]*windows.Excerpt, len(scopes))
	for i, s := range scopes {
		if parts[i] = k.excerpts[s]; parts[i] == nil {
			return nil
		}
	}
	return windows.BookOf(parts...)
}

// excerptsMax bounds the number of scopes whose excerpts are kept.
const excerptsMax = 500

// take keeps the excerpts of some scopes.
func (k *known) take(scopes []windows.Scope, x jobs.Excerpts) error {
	if x.Mark != k.mark || len(k.excerpts) > excerptsMax || k.excerpts == nil {
		*k = known{mark: x.Mark, excerpts: map[windows.Scope]*windows.Excerpt{}}
	}
	if x.Table != nil {
		book, err := x.Table.Book()
		if err != nil {
			// A server has read it before: another version of muster reads it differently.
			return fmt.Errorf("version %d cannot be read here: %w", x.Version, err)
		}
		k.all = book
		return nil
	}
	for i, s := range scopes {
		k.excerpts[s] = x.Parts[i]
	}
	return nil
}

// A Reading is the timetable for a place, and the time of Redis.
type Reading struct {
	Book *windows.Book // nil: no timetable was ever read
	Now  time.Time     // the latest time that it can be
	Skew time.Duration // the error of this machine's clock
	Err  error         // why nobody may rely on Book: it is too old, or cannot be read
}

// Current returns the timetable of this moment for a place.
func (a *Agreed) Current(ctx context.Context, p windows.Place) Reading {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	scopes := slices.Collect(p.Scopes())
	err := a.follow(ctx, scopes)
	age := a.clock() - a.sent
	r := Reading{Book: a.known.book(scopes), Skew: a.last.Skew, Now: a.last.Now.Time().Add(age)}
	switch {
	case r.Book == nil, a.known.mark != a.last.Mark:
		r.Err = err
	case err != nil && age > AgeMax:
		r.Err = fmt.Errorf("it was last read %s ago: %w", age.Round(time.Second), err)
	case age > AgeMax:
		r.Err = fmt.Errorf("the answer took %s", age.Round(time.Second))
	}
	doubt := ""
	if r.Err != nil {
		doubt = r.Err.Error()
	}
	a.doubt.Store(doubt)
	return r
}

// followTries bounds the readings of a timetable that changes again and again.
const followTries = 3

// follow asks for the version in force, unless the last answer is fresh, and reads the missing
// parts of that version. The reading may take long, and the answer becomes old meanwhile, so follow
// asks for the version once more after it.
func (a *Agreed) follow(ctx context.Context, scopes []windows.Scope) error {
	for range followTries {
		if !a.asked || a.clock()-a.sent >= agreedEvery || a.known.mark != a.last.Mark {
			if err := a.ask(ctx); err != nil {
				return err
			}
		}
		if a.known.mark == a.last.Mark && a.known.book(scopes) != nil {
			return nil
		}
		if err := a.learn(ctx, scopes); err != nil {
			return err
		}
	}
	return errors.New("it changes faster than it can be read")
}

// ask asks for the version in force.
func (a *Agreed) ask(ctx context.Context) error {
	const within = AgeMax - agreedEvery/2
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	sent := a.clock()
	last, err := a.Agreed(ctx)
	if err != nil {
		return verdict.NoAnswer(err, within)
	}
	a.last, a.sent, a.asked = last, sent, true
	return nil
}

// learnMax bounds the reading of a new timetable.
const learnMax = 10 * time.Second

// learn reads the excerpts of some scopes.
func (a *Agreed) learn(ctx context.Context, scopes []windows.Scope) error {
	ctx, cancel := context.WithTimeout(ctx, learnMax)
	defer cancel()
	x, err := a.Excerpts(ctx, scopes)
	if err != nil {
		return verdict.NoAnswer(err, learnMax)
	}
	return a.known.take(scopes, x)
}

// Why returns why the timetable is not known; empty if it is known, or nobody has asked.
func (a *Agreed) Why() string {
	text, _ := a.doubt.Load().(string)
	return text
}

// Takes returns the time of a runbook by its last successes; 0 if there are none.
func (a *Agreed) Takes(ctx context.Context, field string) (time.Duration, error) {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	e, ok := a.estimates[field]
	if ok && a.clock()-e.read < estimateKeep {
		return e.p90, nil
	}
	ctx, cancel := context.WithTimeout(ctx, AgeMax)
	defer cancel()
	now := a.clock()
	is, known, err := a.Estimate(ctx, field)
	if err != nil {
		return 0, verdict.NoAnswer(err, AgeMax)
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

// estimatesMax bounds the number of estimates that are kept.
const estimatesMax = 1000

// Package agreed knows what people have agreed about times, for all attempts of a worker: it asks
// when something starts, and never acts on an answer that is older than [AgeMax].
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

// Times reads what is agreed about times, and makes alerts about it.
type Times interface {
	// Agreed tells which version of it is in force, and what time it is.
	Agreed(ctx context.Context) (jobs.Agreed, error)

	// Excerpts reads what is in force for some scopes.
	Excerpts(ctx context.Context, scopes []windows.Scope) (jobs.Excerpts, error)

	// Estimate reads how long a runbook takes. It is false if that is not known.
	Estimate(ctx context.Context, field string) (jobs.Estimate, bool, error)

	// Alert tells those who watch a zone of something that they should look at.
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

const (
	// AgeMax bounds the age of the answer by which something may start (design §8).
	AgeMax = 2 * time.Second

	// agreedEvery is the least time between two questions: many short jobs share one reading.
	agreedEvery = time.Second

	// estimateKeep is the time for which an estimate counts. It changes with each success, by little.
	estimateKeep = time.Minute
)

// Agreed keeps the last answer about what is agreed. The attempts of a worker share it. Nothing is
// read while nothing starts.
type Agreed struct {
	Times
	clock func() time.Duration

	// doubt says why the last question had no answer; empty: it had one. It is read while
	// another asks.
	doubt atomic.Value

	turn      chan struct{} // has room for one attempt, to which all that follows belongs
	last      jobs.Agreed   // what was answered last
	sent      time.Duration // before that was asked, on the boot clock
	asked     bool          // it was asked at all
	known     known
	estimates map[string]estimated
}

type estimated struct {
	p90   time.Duration
	known bool
	read  time.Duration // on the boot clock
}

// New returns one that knows nothing yet.
func New(t Times, clock func() time.Duration) *Agreed {
	return &Agreed{Times: t, clock: clock, turn: make(chan struct{}, 1),
		estimates: map[string]estimated{}}
}

// known holds the excerpts that were read of one version.
type known struct {
	version  int64
	excerpts map[windows.Scope]*windows.Excerpt
	all      *windows.Book // everything, where there are no excerpts
}

// book returns what is agreed for some scopes; nil if it was not read.
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

// excerptsMax bounds of how many scopes is kept what was read.
const excerptsMax = 500

// take takes in what was read for some scopes.
func (k *known) take(scopes []windows.Scope, x jobs.Excerpts) error {
	if x.Version != k.version || len(k.excerpts) > excerptsMax || k.excerpts == nil {
		*k = known{version: x.Version, excerpts: map[windows.Scope]*windows.Excerpt{}}
	}
	if x.Table != nil {
		book, err := x.Table.Book()
		if err != nil {
			// It was read before it was kept: another version of muster reads otherwise.
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

// A Reading is what is agreed, and what time it is by Redis.
type Reading struct {
	Book *windows.Book // nil: nothing was ever read
	Now  time.Time     // the latest that it can be
	Skew time.Duration // of this machine's clock
	Err  error         // it is older than it may be, or cannot be read
}

// Current returns what is agreed now for a place.
func (a *Agreed) Current(ctx context.Context, p windows.Place) Reading {
	a.turn <- struct{}{}
	defer func() { <-a.turn }()
	scopes := slices.Collect(p.Scopes())
	err := a.follow(ctx, scopes)
	age := a.clock() - a.sent
	r := Reading{Book: a.known.book(scopes), Skew: a.last.Skew, Now: a.last.Now.Time().Add(age)}
	switch {
	case r.Book == nil, a.known.version != a.last.Version:
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

// followTries bounds how often a version that changes again and again is read anew.
const followTries = 3

// follow asks which version is in force, unless that was answered just now, and reads what is
// not known of it. How long that takes says nothing about the age of what was answered: behind
// it the question is put once more.
func (a *Agreed) follow(ctx context.Context, scopes []windows.Scope) error {
	for range followTries {
		if !a.asked || a.clock()-a.sent >= agreedEvery || a.known.version > a.last.Version {
			if err := a.ask(ctx); err != nil {
				return err
			}
		}
		if a.known.version == a.last.Version && a.known.book(scopes) != nil {
			return nil
		}
		if err := a.learn(ctx, scopes); err != nil {
			return err
		}
	}
	return errors.New("it changes faster than it can be read")
}

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

// learnMax bounds the reading of what is new.
const learnMax = 10 * time.Second

func (a *Agreed) learn(ctx context.Context, scopes []windows.Scope) error {
	ctx, cancel := context.WithTimeout(ctx, learnMax)
	defer cancel()
	x, err := a.Excerpts(ctx, scopes)
	if err != nil {
		return verdict.NoAnswer(err, learnMax)
	}
	return a.known.take(scopes, x)
}

// Why returns why it is not known what is agreed; empty if it is known, or nobody asked.
func (a *Agreed) Why() string {
	text, _ := a.doubt.Load().(string)
	return text
}

// Takes returns how long a runbook takes by its last successes; 0 if that is not known.
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

// estimatesMax bounds how many estimates are kept.
const estimatesMax = 1000

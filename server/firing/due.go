package firing

import (
	"context"
	"errors"
	"time"

	"muster/server/duties"
	"muster/triggers"
)

// Duty names the duty to fire what was collected, in Redis; it must never change.
const Duty = "triggers"

// The times between two looks.
const (
	dueEvery  = time.Second
	trimEvery = time.Minute
)

// Run fires collected events that are due, and forgets old records, until ctx is done.
func (f *Firer) Run(ctx context.Context) {
	var trimmed time.Time
	duties.Repeat(ctx, f.Log, "triggers", dueEvery, func(ctx context.Context) error {
		err := f.Due(ctx)
		if f.Now().Sub(trimmed) >= trimEvery {
			trimmed = f.Now()
			err = errors.Join(err, f.Book.Trim(ctx, trimmed))
		}
		return err
	})
}

// Due fires the collected events that are due. One that cannot be fired now stays.
func (f *Firer) Due(ctx context.Context) error {
	all, _, err := f.Book.Memories(ctx)
	if err != nil {
		return err
	}
	set, err := f.Keeper.Set(ctx)
	if err != nil {
		return err
	}
	broken := f.Keeper.Complaint() != ""
	var errs []error
	for name, past := range all {
		if _, _, ripe := past.Ripe(f.Now()); !ripe {
			continue
		}
		t, found := set.Find(name)
		if !found && broken {
			continue // there is a mistake that somebody will correct
		}
		if !found {
			t = triggers.Trigger{Name: name}
		}
		errs = append(errs, f.release(ctx, t))
	}
	return errors.Join(errs...)
}

// release fires the collected events of a trigger that are due. Of a trigger that is gone it drops
// them, and says so.
func (f *Firer) release(ctx context.Context, t triggers.Trigger) error {
	defer f.lock(t.Name)()
	for {
		all, _, err := f.Book.Memories(ctx)
		if err != nil {
			return err
		}
		past := all[t.Name]
		_, h, ripe := past.Ripe(f.Now())
		if !ripe {
			return nil
		}
		d := t.Release(h, past, f.Now())
		if t.Line == 0 {
			d.Why = []string{"the trigger was removed before it fired"}
		}
		if _, err := f.carryOut(ctx, t, d); err != nil {
			return err
		}
	}
}

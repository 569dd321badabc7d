package duties

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// TimesEvery is the time between two rounds of Times. A round changes nothing if a server said
// within the last minute that the timetable is in force; but Redis may have lost that.
const TimesEvery = 5 * time.Second

// Times says again and again that the timetable is in force. Each server does it: so nodes wait for
// no election, and each server knows which timetable was the last.
type Times struct {
	// Timetable is the one in Redis; nil: it is not signed.
	Timetable interface {
		Restate(ctx context.Context, may func(version int64) error) error
	}
	// Kept returns the version of the timetable that history has; nil: there is no history.
	Kept func(ctx context.Context) (int64, error)

	mu    sync.Mutex
	known int64 // the last version that history allowed
	asked bool  // history has answered since this server started
}

// RunOnce says that the timetable is in force, unless history knows a later one.
func (d *Times) RunOnce(ctx context.Context) error {
	if d.Timetable == nil {
		return nil
	}
	if d.Kept == nil {
		return d.Timetable.Restate(ctx, func(int64) error { return nil })
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.Timetable.Restate(ctx, func(version int64) error {
		kept, err := d.Kept(ctx)
		switch {
		case err != nil && !d.asked:
			return fmt.Errorf("history, which would know whether there was a later one, cannot be asked: %w",
				err)
		case err != nil && version < d.known:
			return fmt.Errorf("it is version %d, and version %d was in force", version, d.known)
		case err == nil && version < kept:
			return fmt.Errorf("it is version %d, and history has version %d", version, kept)
		}
		d.asked, d.known = true, max(d.known, version)
		return nil
	})
}

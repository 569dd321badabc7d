package server

import (
	"context"
	"time"
)

const (
	// forgetSlice is how long old rows are deleted at a stretch: the streams wait for it.
	forgetSlice = 250 * time.Millisecond
	// forgetPause is between two stretches while there is more to delete.
	forgetPause = time.Second
	// forgetLook is how often it is looked whether there is anything.
	forgetLook = time.Minute
)

// forgetter deletes what is older than history keeps it, a stretch at a time, so that
// neither the streams nor who asks has to wait for it.
type forgetter struct{ next time.Time }

// stretch deletes batches for a short time, if it is time for it. forget deletes one batch,
// and returns how many rows that were; 0: there is nothing left.
func (f *forgetter) stretch(ctx context.Context, now time.Time,
	forget func(context.Context) (int64, error)) error {
	if now.Before(f.next) {
		return nil
	}
	for begun := time.Now(); time.Since(begun) < forgetSlice; {
		if n, err := forget(ctx); err != nil || n == 0 {
			f.next = now.Add(forgetLook)
			return err
		}
	}
	f.next = now.Add(forgetPause)
	return nil
}

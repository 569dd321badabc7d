package historian

import (
	"context"
	"time"
)

const (
	// forgetSlice bounds the time in which old rows are deleted: the streams wait meanwhile.
	forgetSlice = 250 * time.Millisecond
	// forgetPause is between two stretches while there is more to delete.
	forgetPause = time.Second
	// forgetLook is between two looks when there is nothing to delete.
	forgetLook = time.Minute
)

// forgetter deletes what is older than history keeps it, a stretch at a time, so that
// neither the streams nor people who ask history have to wait for it.
type forgetter struct{ next time.Time }

// stretch deletes batches for a short time, if one is due. forget deletes one batch, and
// returns the number of its rows; 0: there is nothing left.
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

package main

import "context"

// later runs a function in the background, so that callers never wait. Requests during a run cause
// one more run after it.
type later chan struct{}

// newLater runs do on request until the context is done or the role is closed.
func (r *role) newLater(ctx context.Context, do func()) later {
	asked := make(later, 1)
	r.hearing.Go(func() {
		for {
			select {
			case <-asked:
				do()
			case <-ctx.Done():
				return
			case <-r.ears.closed:
				return
			}
		}
	})
	return asked
}

// newReload is newLater for what reads the configuration again, of which systemd is told.
func (r *role) newReload(ctx context.Context, v *vigil, do func()) later {
	return r.newLater(ctx, func() {
		v.tell(v.unit.Reloading())
		do()
		v.tell(v.unit.Ready())
	})
}

// ask requests a run.
func (l later) ask() {
	select {
	case l <- struct{}{}:
	default: // a run is requested already
	}
}

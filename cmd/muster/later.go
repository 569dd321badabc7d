package main

import "context"

// later does something beside, so that who asks for it never waits. What is asked while it is
// done is done once more after it.
type later chan struct{}

// newLater does it until the context is done or the role is closed.
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

// ask asks for it.
func (l later) ask() {
	select {
	case l <- struct{}{}:
	default: // it is asked for already
	}
}

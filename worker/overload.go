package worker

import (
	"context"
	"sync"
	"time"

	"muster/jobs"
)

// Reorderer reorders an overloaded queue.
type Reorderer interface {
	// Reorder makes the order of the overdue jobs fair, if that is worth it and nobody else does.
	Reorder(ctx context.Context, zone string, o jobs.Overload) (jobs.Reordering, error)
}

// reorderer makes an overloaded queue fair, beside the work. Each worker that gets a late job tries
// to reorder; one of them does it, while the others take jobs from the queue. A worker makes one
// walk at a time.
type reorderer struct {
	*Worker
	zone    string
	stop    context.CancelFunc // of the walk; nil: there is none
	over    chan struct{}      // gets a value when the walk is over
	walking sync.WaitGroup
	again   time.Duration // the time of the next try, on the boot clock
	after   time.Duration // the pause that the last walk asked for; read after its end
}

func newReorderer(w *Worker, zone string) reorderer {
	return reorderer{Worker: w, zone: zone, over: make(chan struct{}, 1)}
}

// look starts a walk if one of the jobs came late.
func (o *reorderer) look(ctx context.Context, r jobs.Reply) {
	if o.stop != nil || o.Clock() < o.again {
		return
	}
	for _, g := range r.Jobs {
		if o.cfg.Overload.Late(g, r.Now) {
			ctx, o.stop = context.WithCancel(ctx)
			o.walking.Go(func() {
				o.after = o.walk(ctx)
				o.over <- struct{}{} // there is room: one walk at a time
			})
			return
		}
	}
}

// walk reorders the queue, and returns the pause before the next try. A stop may come at any
// moment: a queue that is reordered half way is in order, too.
func (o *reorderer) walk(ctx context.Context) time.Duration {
	r, err := o.Queue.Reorder(ctx, o.zone, o.cfg.Overload)
	if err != nil && ctx.Err() == nil {
		o.Log.Warn("the queue could not be reordered", "zone", o.zone, "moved", r.Moved, "error", err)
	}
	if r.Did {
		o.Log.Info("overload: the queue was reordered", "zone", o.zone, "moved", r.Moved,
			"took", r.Took, "end", string(r.Why))
	}
	if r.Again <= 0 {
		return o.cfg.Overload.Cooldown
	}
	return r.Again
}

// ended takes the end of a walk. The caller calls it when it has received from over.
func (o *reorderer) ended() {
	o.stop()
	o.stop, o.again = nil, o.Clock()+o.after
}

// cancel ends a walk soon. Its end comes over the channel all the same.
func (o *reorderer) cancel() {
	if o.stop != nil {
		o.stop()
	}
}

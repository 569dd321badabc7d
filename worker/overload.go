package worker

import (
	"context"
	"sync"
	"time"

	"muster/jobs"
)

// Orderer reorders an overloaded queue.
type Orderer interface {
	// Reorder makes the order of the overdue jobs fair, if that is worth it and nobody else does.
	Reorder(ctx context.Context, zone string, o jobs.Overload) (jobs.Reordering, error)
}

// orderer makes an overloaded queue fair, beside the work: who meets a job that
// comes late tries, and the one that gets to it reorders while the others go on
// emptying the queue. At most one walk at a time.
type orderer struct {
	*Worker
	zone    string
	stop    context.CancelFunc // of the walk; nil: there is none
	over    chan struct{}      // told when it is over
	walking sync.WaitGroup
	again   time.Duration // on the boot clock: it makes no sense to try before
	after   time.Duration // the pause that the last walk asked for; read when it is over
}

func newOrderer(w *Worker, zone string) orderer {
	return orderer{Worker: w, zone: zone, over: make(chan struct{}, 1)}
}

// look tries to reorder if one of the jobs came late.
func (o *orderer) look(ctx context.Context, r jobs.Reply) {
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

// walk returns how long it makes no sense to try again. A stop may come at any
// moment: a queue that is reordered half way is as good as any.
func (o *orderer) walk(ctx context.Context) time.Duration {
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

// ended is to be called when over has told.
func (o *orderer) ended() {
	o.stop()
	o.stop, o.again = nil, o.Clock()+o.after
}

// cancel ends a walk soon. Its end is told all the same.
func (o *orderer) cancel() {
	if o.stop != nil {
		o.stop()
	}
}

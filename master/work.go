package master

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// callWait bounds one try of a call. A slower answer is not waited for, but
	// asked for again under the same request id.
	callWait = 5 * time.Second

	// The pauses between tries of a call.
	callPause    = 100 * time.Millisecond
	callPauseMax = 2 * time.Second
)

// work is the goroutines of a node: those that wait for something in its place.
type work struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	events chan func()   // to be run by the node
	hints  chan struct{} // holds at most one
	closed chan struct{} // nobody runs events any more
}

func newWork() *work {
	w := &work{
		events: make(chan func()),
		hints:  make(chan struct{}, 1),
		closed: make(chan struct{}),
	}
	w.renew()
	return w
}

// renew lets goroutines be started again after cancel.
func (w *work) renew() { w.ctx, w.cancel = context.WithCancel(context.Background()) }

// post has the node run f.
func (w *work) post(f func()) {
	select {
	case w.events <- f:
	case <-w.closed:
	}
}

// idle is closed when all goroutines have ended. Until then the node must run
// their events, because they wait for that.
func (w *work) idle() <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		w.wg.Wait()
	}()
	return idle
}

// finish waits for all goroutines and drops their events. It is the end.
func (w *work) finish() {
	close(w.closed)
	w.wg.Wait()
}

// insist repeats f until it is answered, and tells of each failure, and of the
// success after one: with nil. It returns false if work was cancelled before.
func (w *work) insist(ctx context.Context, f func(context.Context) error, tell func(error)) bool {
	for try := 0; ; try++ {
		err := once(ctx, f)
		if err == nil {
			if try > 0 {
				tell(nil)
			}
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		tell(err)
		select {
		case <-time.After(pause(try, rand.Float64(), callPause, callPauseMax)):
		case <-ctx.Done():
			return false
		}
	}
}

func once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	return f(ctx)
}

// pause is how long to wait after so many failures before: twice as long each
// time, up to a quarter of it left to chance so that nodes do not march in step.
func pause(failures int, chance float64, first, most time.Duration) time.Duration {
	d := most
	if failures < 16 {
		d = min(first<<failures, most)
	}
	return d - time.Duration(chance*float64(d)/4)
}

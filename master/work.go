package master

import (
	"context"
	"sync"
	"time"
)

const (
	// callWait bounds one try of a call. The master does not wait for a slower answer, but
	// asks for it again under the same request id.
	callWait = 5 * time.Second

	// The least and the longest pause between two tries of a call.
	callPause    = 100 * time.Millisecond
	callPauseMax = 2 * time.Second
)

// work holds the goroutines that wait for something in place of the node.
type work struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	events chan func()   // functions for the node's goroutine to run
	hints  chan struct{} // holds one hint at most
	closed chan struct{} // closed when nobody runs events any more
	chance func() float64
}

func newWork(chance func() float64) *work {
	w := &work{
		events: make(chan func()),
		hints:  make(chan struct{}, 1),
		closed: make(chan struct{}),
		chance: chance,
	}
	w.renew()
	return w
}

// renew allows goroutines to be started again after cancel.
func (w *work) renew() { w.ctx, w.cancel = context.WithCancel(context.Background()) }

// post sends f to the node's goroutine, which runs it.
func (w *work) post(f func()) {
	select {
	case w.events <- f:
	case <-w.closed:
	}
}

// idle returns a channel that is closed when all goroutines have ended. Until then the node
// must run their events, because the goroutines wait for that.
func (w *work) idle() <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		w.wg.Wait()
	}()
	return idle
}

// finish waits for the end of all goroutines and drops their events. The work cannot be
// used after it.
func (w *work) finish() {
	close(w.closed)
	w.wg.Wait()
}

// insist repeats f until it succeeds. It calls tell with each error, and with nil at a
// success that follows an error. It returns false if the work was cancelled first.
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
		case <-time.After(pause(try, w.chance(), callPause, callPauseMax)):
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

// pause returns how long to wait after so many failures: twice as long each time, less a
// random part of up to a quarter, so that nodes do not retry in step.
func pause(failures int, chance float64, first, most time.Duration) time.Duration {
	d := most
	if failures < 16 {
		d = min(first<<failures, most)
	}
	return d - time.Duration(chance*float64(d)/4)
}

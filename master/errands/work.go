// Package errands waits for things in place of a master: calls of Redis, children, orphans. Each
// wait has a goroutine of its own, which then sends the goroutine of the master a function to run.
//
// Floor 2: may import the standard library only.
package errands

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
	CallPause    = 100 * time.Millisecond
	callPauseMax = 2 * time.Second
)

// Work holds the goroutines that wait for something in place of the node.
type Work struct {
	Ctx    context.Context // of all of them
	Cancel context.CancelFunc
	Wait   sync.WaitGroup
	Events chan func()   // functions for the node's goroutine to run
	Hints  chan struct{} // holds one hint at most

	closed chan struct{} // closed when nobody runs events any more
	chance func() float64
}

// New returns a Work without a goroutine. chance gives numbers from 0 to 1.
func New(chance func() float64) *Work {
	w := &Work{
		Events: make(chan func()),
		Hints:  make(chan struct{}, 1),
		closed: make(chan struct{}),
		chance: chance,
	}
	w.Renew()
	return w
}

// Renew allows goroutines to be started again after Cancel.
func (w *Work) Renew() { w.Ctx, w.Cancel = context.WithCancel(context.Background()) }

// Post sends f to the node's goroutine, which runs it.
func (w *Work) Post(f func()) {
	select {
	case w.Events <- f:
	case <-w.closed:
	}
}

// Idle returns a channel that is closed when all goroutines have ended. Until then the node
// must run their events, because the goroutines wait for that.
func (w *Work) Idle() <-chan struct{} {
	idle := make(chan struct{})
	go func() {
		defer close(idle)
		w.Wait.Wait()
	}()
	return idle
}

// Finish waits for the end of all goroutines and drops their events. The work cannot be
// used after it.
func (w *Work) Finish() {
	close(w.closed)
	w.Wait.Wait()
}

// Insist repeats f until it succeeds. It calls tell with each error, and with nil at a
// success that follows an error. It returns false if the work was cancelled first.
func (w *Work) Insist(ctx context.Context, f func(context.Context) error, tell func(error)) bool {
	for try := 0; ; try++ {
		err := Once(ctx, f)
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
		case <-time.After(Pause(try, w.chance(), CallPause, callPauseMax)):
		case <-ctx.Done():
			return false
		}
	}
}

// Once calls f, and waits for its answer as long as for that of one try.
func Once(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWait)
	defer cancel()
	return f(ctx)
}

// Pause returns how long to wait after so many failures: twice as long each time, less a
// random part of up to a quarter, so that nodes do not retry in step.
func Pause(failures int, chance float64, first, most time.Duration) time.Duration {
	d := most
	if failures < 16 {
		d = min(first<<failures, most)
	}
	return d - time.Duration(chance*float64(d)/4)
}

// Pass tells the node of hints; many hints may become one.
func (w *Work) Pass(ctx context.Context, hints <-chan struct{}) {
	for {
		select {
		case <-hints:
		case <-ctx.Done():
			return
		}
		select {
		case w.Hints <- struct{}{}:
		default:
		}
	}
}

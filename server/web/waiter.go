package web

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

const (
	// waitMax bounds the time for which a client may wait for a change.
	waitMax = time.Minute
	// The looks become rarer, from the first pause to the last.
	pollFirst = 100 * time.Millisecond
	pollLast  = time.Second
)

// ParseWait reads the time for which a client wants to wait: a number of seconds, or 30s.
func ParseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > waitMax {
		return 0, fmt.Errorf("%q: want seconds, 0 to %g", Clip(text), waitMax.Seconds())
	}
	return d, nil
}

// A Waiter waits on behalf of a client, at most until the server stops.
type Waiter struct{ Stopping <-chan struct{} }

// Pause waits for a time. It reports whether the client and the server are both still there.
func (w Waiter) Pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-w.Stopping:
		return false
	case <-t.C:
		return true
	}
}

// Await calls look, at growing distances, until it reports success or the time is over.
func (w Waiter) Await(ctx context.Context, wait time.Duration, look func() (bool, error)) error {
	over := time.NewTimer(wait)
	defer over.Stop()
	for poll := pollFirst; ; poll = min(poll*3/2, pollLast) {
		if found, err := look(); err != nil || found || wait == 0 {
			return err
		}
		next := time.NewTimer(poll)
		select {
		case <-next.C:
			continue
		case <-over.C:
		case <-w.Stopping:
		case <-ctx.Done():
		}
		next.Stop()
		return nil
	}
}

package stock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"muster/fleet"
)

const (
	// readPatience bounds the wait for an inventory. Its programs and URLs have a minute
	// each; a file system that is away may never answer.
	readPatience = 2 * time.Minute
	// After readSlow health says that the server waits for an inventory.
	readSlow = 30 * time.Second
)

// patient is an inventory that may hang. Nobody waits for it longer than readPatience, or when
// the server stops; meanwhile it is asked nothing else.
type patient struct {
	source Source
	most   time.Duration

	mu    sync.Mutex
	since time.Time // when what is under way began; zero: nothing is
	left  bool      // nobody waits for it any more
	late  bool      // it ended after that, so the inventory may have changed
}

func newPatient(source Source) *patient {
	if source == nil {
		return nil
	}
	return &patient{source: source, most: readPatience}
}

// Read calls the source.
func (p *patient) Read(ctx context.Context, now time.Time) (inv *fleet.Inventory, err error) {
	type result struct {
		inv *fleet.Inventory
		err error
	}
	var out result
	err = ask(ctx, p, &out, func() result {
		inv, err := p.source.Read(ctx, now)
		return result{inv, err}
	})
	if err != nil {
		return nil, err
	}
	return out.inv, out.err
}

// Changed calls the source. A source that hangs has not changed.
func (p *patient) Changed(ctx context.Context, now time.Time) (is bool) {
	p.mu.Lock()
	late, hangs := p.late, !p.since.IsZero()
	p.mu.Unlock()
	if late || hangs {
		return late
	}
	return ask(ctx, p, &is, func() bool { return p.source.Changed(now) }) == nil && is
}

// ask calls a function of the source, and waits at most as long as patience lasts.
func ask[T any](ctx context.Context, p *patient, out *T, f func() T) error {
	p.mu.Lock()
	if !p.since.IsZero() {
		defer p.mu.Unlock()
		return p.hung()
	}
	p.since, p.left, p.late = time.Now(), false, false
	p.mu.Unlock()

	done := make(chan T, 1)
	go func() {
		v := f()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.since, p.late = time.Time{}, p.left
		done <- v
	}()
	bound := time.NewTimer(p.most)
	defer bound.Stop()
	var err error
	select {
	case *out = <-done:
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-bound.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() { // at the last moment
		*out = <-done
		return nil
	}
	p.left = true
	if err == nil {
		err = p.hung()
	}
	return err
}

// hung returns the error of a source that does not answer. The caller holds p.mu.
func (p *patient) hung() error {
	return fmt.Errorf("it has been read since %s and is not done: a file system, program or URL that "+
		"it names does not answer", p.since.UTC().Format(time.RFC3339))
}

// slow returns a text if the source takes long; empty: it does not.
func (p *patient) slow(now time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() || now.Sub(p.since) < readSlow {
		return ""
	}
	return "inventory: " + p.hung().Error() + "; the earlier one stays in force"
}

package remote

import (
	"context"
	"slices"
	"sync"
	"time"
)

// How many clients may be at one door at a time. sshd randomly drops connections that are not
// logged in yet from the tenth on (MaxStartups 10:30:100). A jump host only opens channels,
// which costs it little.
const (
	loginsFirst, loginsMost = 2, 8
	waysFirst, waysMost     = 4, 64
)

// calmFor clients must pass before a full door is tried with one more client than
// it could bear.
const calmFor = 32

// throttledTries bounds how often one call tries a door that reports too many connections. If all
// tries fail, the caller returns much later.
const throttledTries = 5

// throttledPause returns how long to wait after the n-th refusal, counted from 0. The time
// doubles and varies at random from half to three halves, because clients that were refused
// together must not return together.
func throttledPause(n int, chance float64) time.Duration {
	const first = 200 * time.Millisecond
	pause := first << n
	return pause/2 + time.Duration(chance*float64(pause))
}

// pacers limits how many clients pass each door at a time; a door is an sshd or a jump host.
// A door begins with few clients and gets room for one more after each success, so the number
// doubles in each round. When the door reports too many, the number is halved. Other failures
// do not count as the door's: a jump host that cannot reach a host has answered, and dead
// hosts behind it must not slow down the others.
type pacers struct {
	first, most int

	mu    sync.Mutex
	doors map[string]*door // guarded by mu; only doors that somebody uses or waits for
}

type door struct {
	pace
	inside  int
	waiting []chan struct{} // first come, first served
}

// pace holds the experience of previous clients with a door.
type pace struct {
	width   int // how many at a time
	ceiling int // how far the width may grow
	calm    int // how many passed since the door last reported too many
}

// after updates the pace when a client has left. The ceiling never exceeds most.
func (d *pace) after(kind Kind, most int) {
	if kind == KindThrottled {
		d.ceiling, d.calm = max(1, min(d.width, d.ceiling)-1), 0
		d.width = max(1, d.width/2)
		return
	}
	if d.calm++; d.calm%calmFor == 0 {
		d.ceiling = min(d.ceiling+1, most)
	}
	d.width = min(d.width+1, d.ceiling)
}

// enter waits for room at a door. The caller must call leave afterwards.
func (p *pacers) enter(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return ended(ctx)
	}
	p.mu.Lock()
	d := p.doors[name]
	if d == nil {
		d = &door{pace: pace{width: p.first, ceiling: p.most}}
		if p.doors == nil {
			p.doors = make(map[string]*door)
		}
		p.doors[name] = d
	}
	if d.inside < d.width && len(d.waiting) == 0 {
		d.inside++
		p.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	d.waiting = append(d.waiting, turn)
	p.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(d.waiting, turn); i >= 0 {
		d.waiting = slices.Delete(d.waiting, i, i+1)
		return ended(ctx)
	}
	d.inside-- // the turn came at that moment: pass it on
	p.admit(name, d)
	return ended(ctx)
}

// leave frees the place and records how the call went.
func (p *pacers) leave(name string, kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()

	d := p.doors[name]
	d.inside--
	d.after(kind, p.most)
	p.admit(name, d)
}

// admit lets waiting clients in as long as there is room, and deletes a door that nobody
// uses.
func (p *pacers) admit(name string, d *door) {
	for d.inside < d.width && len(d.waiting) > 0 {
		d.inside++
		close(d.waiting[0])
		d.waiting = d.waiting[1:]
	}
	if d.inside == 0 && len(d.waiting) == 0 {
		delete(p.doors, name)
	}
}

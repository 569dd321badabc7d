package remote

import (
	"context"
	"slices"
	"sync"
	"time"
)

// How many may knock at one door at a time. sshd drops connections that are not
// logged in at random from the tenth on (MaxStartups 10:30:100); a jump host opens
// ways for others, which costs it little.
const (
	loginsFirst, loginsMost = 2, 8
	waysFirst, waysMost     = 4, 64
)

// calmFor is how many must come through before a door that was full is asked for one
// more than it bore.
const calmFor = 32

// throttledTries is how often a door is tried that says that there are too many,
// within one call. Who is still turned away then comes back much later.
const throttledTries = 5

// throttledPause is how long to wait after the n-th refusal, counted from 0: twice as
// long each time, and by chance from half to three halves of that, for those who were
// turned away together must not come back together.
func throttledPause(n int, chance float64) time.Duration {
	const first = 200 * time.Millisecond
	pause := first << n
	return pause/2 + time.Duration(chance*float64(pause))
}

// pacers lets only so many at a time through each door, which is an sshd or a jump
// host. It begins with few and lets in one more after each that came through, so that
// the number doubles with each round; when the door says that they are too many it
// goes back to half. Any other trouble is not the door's: a jump host that cannot reach
// a host has answered, and those behind it that are dead must not hold up the others.
type pacers struct {
	first, most int

	mu    sync.Mutex
	doors map[string]*door // guarded by mu; those that somebody is at
}

type door struct {
	pace
	inside  int
	waiting []chan struct{} // first come, first served
}

// pace is what was learned of a door.
type pace struct {
	width   int // how many at a time
	ceiling int // how far the width may grow
	calm    int // how many came through since the door last said that they are too many
}

// after is the pace when somebody has left. The ceiling is at most most.
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

// enter waits until there is room at a door. Whoever has entered must leave.
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
	d.inside-- // our turn came in that moment: it is somebody else's
	p.admit(name, d)
	return ended(ctx)
}

// leave gives the place back and tells how it went.
func (p *pacers) leave(name string, kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()

	d := p.doors[name]
	d.inside--
	d.after(kind, p.most)
	p.admit(name, d)
}

// admit lets in who waits, as far as there is room, and forgets a door at which
// nobody is any more.
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

package sim

import (
	"cmp"
	"container/heap"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// This file keeps the order of a story in which real workers have goroutines of their own. The
// world belongs to one goroutine. A worker reaches the world by visits alone: the world looks at
// them when all goroutines wait, in the order of their names, and lets one goroutine go on at a
// time. So it does not matter which goroutine was quicker, and a seed replays.

// A bubble holds the visits of workers, and the pretended time in which they come.
type bubble struct {
	zero    time.Time // when the story began
	timer   *time.Timer
	woken   bool // a goroutine may be at work
	bell    chan struct{}
	workers sync.WaitGroup

	mu     sync.Mutex
	visits []*visit // guarded by mu
}

func newBubble() bubble {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return bubble{zero: time.Now(), timer: timer, bell: make(chan struct{}, 1)}
}

// A visit is a question of a goroutine of a worker to the world.
type visit struct {
	name     string
	do       func()
	answered bool
	back     chan any // has room for the answer
}

// boot returns the time of all machines, for goroutines of workers.
func (b *bubble) boot() time.Duration { return time.Since(b.zero) }

// comes brings a visit to the world.
func (b *bubble) comes(v *visit) {
	b.mu.Lock()
	b.visits = append(b.visits, v)
	b.mu.Unlock()
	select {
	case b.bell <- struct{}{}:
	default:
	}
}

// waiting takes the visits that have come, in the order of their names.
func (b *bubble) waiting() []*visit {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.visits
	b.visits = nil
	slices.SortStableFunc(list, func(x, y *visit) int { return cmp.Compare(x.name, y.name) })
	return list
}

// answer lets the goroutine of a visit go on.
func (w *world) answer(v *visit, with any) {
	if !v.answered {
		v.answered, w.woken = true, true
		v.back <- with
	}
}

// run lets things happen until then, or until a promise is broken.
func (w *world) run(until time.Duration) {
	for w.wrong == "" {
		if w.woken {
			w.woken = false
			synctest.Wait()
			w.look()
			continue
		}
		next := until
		if len(w.events) > 0 {
			next = min(until, w.events[0].at)
		}
		if next > w.now {
			w.sleep(next - w.now)
			continue
		}
		if len(w.events) == 0 || w.events[0].at > until {
			return
		}
		heap.Pop(&w.events).(event).do()
	}
}

// look looks at the visits that have come. Of two with one name nobody could say which is first.
func (w *world) look() {
	list := w.waiting()
	for i, v := range list {
		if i > 0 && v.name == list[i-1].name {
			w.broken("the simulation: two visits at one instant are called %q", v.name)
		}
		v.do()
	}
}

// sleep lets time pass, until somebody comes.
func (w *world) sleep(d time.Duration) {
	w.timer.Reset(d)
	select {
	case <-w.timer.C:
	case <-w.bell:
		w.timer.Stop()
	}
	w.now, w.woken = w.boot(), true
}

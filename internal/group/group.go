// Package group counts goroutines, so that somebody can wait for their end while others still
// begin. A sync.WaitGroup may not be used so: it panics if a goroutine begins while Wait returns.
//
// Floor 0: imports nothing of ours.
package group

import "sync"

// A Group counts the goroutines that it has begun. Its zero value has none.
type Group struct {
	mu      sync.Mutex
	running int
	none    chan struct{} // closed when the last one ends; nil: nobody waits
}

// Go calls f in a goroutine of its own.
func (g *Group) Go(f func()) {
	g.mu.Lock()
	g.running++
	g.mu.Unlock()
	go func() {
		defer g.end()
		f()
	}()
}

func (g *Group) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running--; g.running == 0 && g.none != nil {
		close(g.none)
		g.none = nil
	}
}

// Wait returns at a moment at which no goroutine ran. One that begins later is not waited for.
func (g *Group) Wait() {
	g.mu.Lock()
	if g.running == 0 {
		g.mu.Unlock()
		return
	}
	if g.none == nil {
		g.none = make(chan struct{})
	}
	none := g.none
	g.mu.Unlock()
	<-none
}

package group_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"muster/internal/group"
)

// One goroutine ends, another begins, and a third waits, at the same moment: a sync.WaitGroup
// panics or races here.
func TestGoroutinesMayBeginWhileSomebodyWaits(t *testing.T) {
	for range 2000 {
		var g group.Group
		var ended atomic.Int32
		g.Go(func() { ended.Add(1) })
		var others sync.WaitGroup
		others.Go(func() { g.Go(func() { ended.Add(1) }) })
		others.Go(g.Wait)
		others.Go(g.Wait)
		others.Wait()
		g.Wait()
		if n := ended.Load(); n != 2 {
			t.Fatalf("%d goroutines have ended, want 2", n)
		}
	}
}

func TestWaitWithoutGoroutinesReturns(t *testing.T) {
	var g group.Group
	g.Wait()
}

package remote

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestADoorOpensByAndBy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pacers{first: 2, most: 8}
		inside, most := 0, 0
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if err := p.enter(t.Context(), "a"); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				inside--
				mu.Unlock()
				p.leave("a", "")
			})
		}
		time.Sleep(500 * time.Millisecond)
		mu.Lock()
		if inside != 2 {
			t.Errorf("%d are inside at first, want 2", inside)
		}
		mu.Unlock()
		start := time.Now()
		all.Wait()
		if most != 8 {
			t.Errorf("%d were inside at most, want 8", most)
		}
		// 2, 4, 8, 8 …: 100 of them in 14 rounds.
		if took := time.Since(start).Round(time.Second); took > 15*time.Second {
			t.Errorf("it took %s", took)
		}
		if len(p.doors) != 0 {
			t.Errorf("%d doors are remembered for nobody", len(p.doors))
		}
	})
}

func TestADoorThatIsFullNarrows(t *testing.T) {
	t.Parallel()
	p := pacers{first: 2, most: 8}
	enter := func(n int) {
		for range n {
			if err := p.enter(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
	}
	enter(1) // keeps the door
	for range 20 {
		enter(1)
		p.leave("a", "")
	}
	if w := p.doors["a"].width; w != 8 {
		t.Fatalf("width %d, want 8", w)
	}
	for _, want := range []int{4, 2, 1} {
		enter(1)
		p.leave("a", KindThrottled)
		if w := p.doors["a"].width; w != want {
			t.Errorf("width %d, want %d", w, want)
		}
	}
	p.doors["a"].ceiling = 3
	for n := range calmFor + 1 {
		p.doors["a"].inside++
		p.leave("a", "")
		if w := p.doors["a"].width; n > 2 && n < calmFor-1 && w != 3 {
			t.Errorf("width %d after %d that came through, want 3: it was full with 4", w, n+1)
		}
	}
	if w := p.doors["a"].width; w != 4 {
		t.Errorf("width %d, want one more after a while", w)
	}
	p.doors["a"].width = 1
	enter2 := make(chan error, 1)
	go func() { enter2 <- p.enter(t.Context(), "a") }()
	p.leave("a", KindThrottled)
	if err := <-enter2; err != nil {
		t.Errorf("a door that was full for long is closed for ever: %v", err)
	}
	p.leave("a", "")
}

func TestWhoGivesUpAtTheDoorLeavesItToOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pacers{first: 1, most: 1}
		if err := p.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("why")
		var waiting sync.WaitGroup
		waiting.Go(func() {
			if err := p.enter(ctx, "a"); !errors.Is(err, why) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		second := make(chan error, 1)
		waiting.Go(func() { second <- p.enter(t.Context(), "a") })
		synctest.Wait()
		cancel(why)
		synctest.Wait()
		p.leave("a", "")
		if err := <-second; err != nil {
			t.Error(err)
		}
		waiting.Wait()
		p.leave("a", "")
		if err := p.enter(ctx, "a"); !errors.Is(err, why) {
			t.Errorf("an ended context came in: %v", err)
		}
		if len(p.doors) != 0 {
			t.Errorf("doors are left: %v", p.doors)
		}
	})
}

// A client that is let in at the moment in which it gives up passes its place on.
func TestAPlaceIsNotLost(t *testing.T) {
	t.Parallel()
	p := pacers{first: 1, most: 1}
	for range 200 {
		if err := p.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var both sync.WaitGroup
		both.Go(func() {
			if p.enter(ctx, "a") == nil {
				p.leave("a", "")
			}
		})
		both.Go(cancel)
		p.leave("a", "")
		both.Wait()
		if err := p.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		p.leave("a", "")
	}
}

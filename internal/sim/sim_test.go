package sim

import (
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	oneSeed = flag.Uint64("sim.seed", 0, "replay this seed, with all that happened")
	seeds   = flag.Uint64("sim.seeds", 60, "how many seeds to play, from 1 on")
	after   = flag.Uint64("sim.after", 0, "play the seeds behind this one, to continue an earlier run")
)

const (
	busy  = 20 * time.Minute // accidents happen
	quiet = 4 * time.Hour    // then all must come to an end
)

// play plays one seed, in pretended time.
func play(t *testing.T, seed uint64) (w *world) {
	synctest.Test(t, func(t *testing.T) { w = playOut(t, seed) })
	return w
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{dir: t.TempDir(), seed: seed, rnd: rand.New(rand.NewPCG(seed, 1)), bubble: newBubble(),
		story: fnv.New64a()}
}

func playOut(t *testing.T, seed uint64) *world {
	w := newWorld(t, seed)
	defer w.close()
	drawFaults(w)
	w.redis = newServer(w)
	newHosts(w, 4+2*w.rnd.IntN(3))
	w.staff = newStaff(w)
	for i := range 1 + w.rnd.IntN(3) {
		w.nodes = append(w.nodes, newNode(w, fmt.Sprint("n", i+1), 1+w.rnd.IntN(3)))
	}
	for range 5 + w.rnd.IntN(10) {
		w.in(w.between(time.Second, busy), w.staff.submit)
	}
	for range 25 {
		w.in(w.between(10*time.Second, busy), w.staff.act)
	}
	w.faults.accidents()
	w.run(busy)
	w.faults.quiet = true
	w.in(6*time.Minute, w.staff.settle)
	for w.now < busy+quiet && w.wrong == "" {
		w.run(w.now + 2*time.Minute)
		if w.now > busy+10*time.Minute && len(w.staff.unfinished()) == 0 {
			break
		}
	}
	w.conclude()
	return w
}

// close ends the processes that are left, and waits for their goroutines.
func (w *world) close() {
	for _, n := range w.nodes {
		for _, c := range n.living() {
			c.kill()
			c.lock.Close()
		}
		if n.master != nil && !n.master.dead {
			n.master.kill()
		}
	}
	w.workers.Wait()
}

// conclude judges what must be true at the end.
func (w *world) conclude() {
	if left := w.staff.unfinished(); len(left) > 0 && !w.faults.forgetful() {
		w.broken("I7, I11: accepted and never ended: %s", strings.Join(left, ", "))
	}
	w.staff.truth()
	s := w.redis.zone
	if n := s.Queue.Len() + s.Again.Len(); n > 0 {
		w.broken("I11: %d jobs still wait", n)
	}
}

// TestSim plays many seeds. A failure names the command that replays its seed.
func TestSim(t *testing.T) {
	t.Parallel()
	if *oneSeed != 0 {
		w := play(t, *oneSeed)
		t.Log(strings.Join(w.trace, "\n"))
		if w.wrong != "" {
			t.Errorf("seed %d: %s", w.seed, w.wrong)
		}
		return
	}
	fired, excused, seen, starts := map[fault]int{}, map[string]int{}, map[string]int{}, 0
	for w := range playAll(t, *seeds) {
		if w.wrong != "" {
			t.Errorf("seed %d: %s\nreplay it: go test ./internal/sim -run TestSim -sim.seed=%d -v",
				w.seed, w.wrong, w.seed)
		}
		for kind, n := range w.faults.fired {
			fired[kind] += n
		}
		for why, n := range w.faults.excused {
			excused[why] += n
		}
		for what, n := range w.faults.seen {
			seen[what] += n
		}
		starts += w.faults.starts
	}
	var b strings.Builder
	for _, kind := range allFaults() {
		fmt.Fprintf(&b, "\n%8d %s", fired[kind], kind)
		if fired[kind] == 0 {
			t.Errorf("the fault %q was never fired", kind)
		}
	}
	for _, why := range sorted(excused) {
		fmt.Fprintf(&b, "\n%8d times %s", excused[why], why)
	}
	t.Logf("%d seeds, %d steps on hosts; faults:%s\nthat is:%s", *seeds, starts, b.String(), covered(t, seen))
}

// playAll plays the seeds on all processors.
func playAll(t *testing.T, n uint64) <-chan *world {
	todo, done := make(chan uint64), make(chan *world)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for seed := range todo {
				done <- play(t, seed)
			}
		})
	}
	go func() {
		for seed := range n {
			todo <- *after + seed + 1
		}
		close(todo)
		wait.Wait()
		close(done)
	}()
	return done
}

// One seed is one story, whichever goroutine of its workers was quicker.
func TestASeedReplays(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 5; seed++ {
		a, b := play(t, seed), play(t, seed)
		if a.n == b.n && a.story.Sum64() == b.story.Sum64() {
			continue
		}
		t.Errorf("seed %d goes two ways, of %d events and %d:\n%s\n\n%s", seed, a.n, b.n,
			strings.Join(a.trace, "\n"), strings.Join(b.trace, "\n"))
	}
}

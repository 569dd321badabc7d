package sim

import (
	"container/heap"
	"fmt"
	"hash"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"muster/jobs"
)

// A world is one run of a seed.
type world struct {
	seed   uint64
	dir    string // for files
	rnd    *rand.Rand
	now    time.Duration // true time, as the boot clocks of all machines show it
	events queue
	n      int // events so far
	bubble

	redis  *server
	hosts  map[string]*host
	nodes  []*node
	staff  *staff
	faults faults

	trace []string    // the last of what happened
	story hash.Hash64 // of all that happened
	wrong string      // the first promise that was broken
}

// event is something that happens at an instant.
type event struct {
	at time.Duration
	n  int // those at one instant happen in the order in which they were planned
	do func()
}

type queue []event

func (q queue) Len() int           { return len(q) }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(event)) }
func (q queue) Less(i, j int) bool { return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n }

func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// in lets something happen after d.
func (w *world) in(d time.Duration, do func()) {
	w.n++
	heap.Push(&w.events, event{w.now + d, w.n, do})
}

const traceMax = 400

// say adds a line to the trace.
func (w *world) say(format string, args ...any) {
	if len(w.trace) == traceMax {
		w.trace = w.trace[1:]
	}
	line := fmt.Sprintf("%12s ", w.now) + fmt.Sprintf(format, args...)
	w.trace = append(w.trace, line)
	fmt.Fprintln(w.story, line)
}

// broken notes that a promise was broken.
func (w *world) broken(format string, args ...any) {
	w.say("BROKEN: "+format, args...)
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func (w *world) chance(p float64) bool { return w.rnd.Float64() < p }

// between is a time between two.
func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rnd.Int64N(int64(b-a)+1))
}

// A process runs on a node, may be stopped for a while, and dies.
type process struct {
	*world
	dead    bool
	stopped bool
	pending []func() // what would have happened while it was stopped

	kills fault  // what may strike it behind a call
	dies  func() // and how it ends then; nil: it does not
	gone  func() // ends its goroutines; nil: it has none

	since atomic.Int64 // stopped since then, in ns; 0: it is not stopped
	looks atomic.Int64 // at the clock, since then
}

// then does something in the process, when it runs.
func (p *process) then(do func()) {
	switch {
	case p.dead:
	case p.stopped:
		p.pending = append(p.pending, do)
	default:
		do()
	}
}

// after does something in the process after d.
func (p *process) after(d time.Duration, do func()) { p.in(d, func() { p.then(do) }) }

// clock is the boot clock as the goroutines of the process see it. It stands still while the process
// is stopped, as if nobody looked. It must not stand still for ever: a goroutine whose timer comes
// would set that anew, and wait for no time at all.
func (p *process) clock() time.Duration {
	now, since := p.boot(), time.Duration(p.since.Load())
	if since == 0 {
		return now
	}
	return min(now, since+time.Duration(p.looks.Add(1))*lookTime)
}

const lookTime = 10 * time.Microsecond

// stop is SIGSTOP, and SIGCONT after d.
func (p *process) stop(d time.Duration) {
	if p.dead || p.stopped {
		return
	}
	p.stopped = true
	p.looks.Store(0)
	p.since.Store(int64(p.now))
	p.in(d, func() {
		p.stopped = false
		p.since.Store(0)
		pending := p.pending
		p.pending = nil
		for _, do := range pending {
			p.then(do)
		}
	})
}

func (p *process) kill() {
	p.dead, p.pending = true, nil
	if p.gone != nil {
		p.gone()
	}
}

// start of the pretended time as Redis' clock shows it.
const start = jobs.Micros(1_760_000_000_000_000)

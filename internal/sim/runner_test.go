package sim

import (
	"context"
	"fmt"
	"hash/fnv"
	"runtime"
)

// A runner is a process that runs real code, with goroutines of its own. All that the code does in
// the world, and all that the world does to it, belongs to the goroutine of the world; the goroutines
// of the runner come as visits.
type runner struct {
	*client
	name   string
	killed chan struct{} // closed when it is: then no visit has an answer
	ctx    context.Context
	cancel context.CancelFunc
}

func (w *world) newRunner(node, slot, name string) *runner {
	r := &runner{client: newClient(&process{world: w}, node, slot), name: name, killed: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.gone = func() {
		close(r.killed)
		r.cancel()
		r.woken = true
	}
	return r
}

// luck returns numbers that depend on the process and the time alone, so that it does not matter
// which goroutine asks first.
func (r *runner) luck() float64 {
	h := fnv.New64a()
	fmt.Fprint(h, r.seed, r.name, r.boot())
	return float64(h.Sum64()>>11) / (1 << 53)
}

// A heed is what a question heeds while it waits for its answer.
type heed struct {
	what string
	when <-chan struct{}
	do   func(*visit) // ends the question, soon
}

// givesUp heeds the end of a context. do ends the question.
func (r *runner) givesUp(ctx context.Context, do func(*visit)) heed {
	return heed{" gives up", ctx.Done(), func(v *visit) { r.after(r.latency(), func() { do(v) }) }}
}

// visit brings a question of a goroutine to the world, and waits for the answer. In a process that
// was killed there is none: the goroutine ends.
func (r *runner) visit(what string, do func(*visit), heeds ...heed) any {
	with, alive := r.tries(what, do, heeds...)
	if !alive {
		runtime.Goexit()
	}
	return with
}

// tries does the same for a goroutine for which others wait: alive is false in a process that was
// killed.
func (r *runner) tries(what string, do func(*visit), heeds ...heed) (with any, alive bool) {
	v := &visit{name: r.name + " " + what, back: make(chan any, 1)}
	come := func(what string, do func(*visit)) {
		r.comes(&visit{name: v.name + what, do: func() { r.then(func() { do(v) }) }})
	}
	come("", do)
	both := [2]heed(append(heeds, heed{}, heed{})[:2])
	for {
		select {
		case <-r.killed:
			return nil, false
		case with := <-v.back:
			return with, true
		case <-both[0].when:
			come(both[0].what, both[0].do)
			both[0].when = nil
		case <-both[1].when:
			come(both[1].what, both[1].do)
			both[1].when = nil
		}
	}
}

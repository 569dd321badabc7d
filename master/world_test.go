package master

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"muster/jobs"
)

// A world is the surroundings of a master in a test: a queue and a hub in memory, which
// record all events and let a test wait for them.
type world struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	shut    chan struct{} // closed at the end of the test
	close   func()        // closes it

	due   map[string][]jobs.Grant // by zone
	hold  map[string]*hand        // by zone and slot
	free  map[jobs.ID]bool        // jobs that may end
	hints chan struct{}
	next  time.Duration // the time until Next in a reply without jobs; 0: nothing is queued

	record
	faults
}

// record holds all that has happened.
type record struct {
	ended   map[jobs.ID]int
	running map[jobs.ID]bool // jobs that wait for free
	most    int              // the most jobs that ran at a time
	backs   []jobs.ID
	losses  []jobs.Loss
	lost    []jobs.ID
	takes   []jobs.Step // steps that asked for jobs
	grants  []time.Time // when such a step got jobs
	beat    jobs.Node
	beats   int
	drains  int // orders to drain that children have heard
	gone    bool
}

// faults are the faults that the world shows.
type faults struct {
	down    error         // the answer to every call
	forget  int           // so many steps are done, but their answers get lost
	stalled chan struct{} // steps are done, but answered only after this is closed
	frozen  string        // why no job is handed out, for a minute
}

// hand holds the jobs of a slot.
type hand struct {
	node    string
	request string
	reply   jobs.Reply
	jobs    []jobs.Grant
}

func newWorld(t *testing.T) *world {
	w := &world{
		changed: make(chan struct{}),
		shut:    make(chan struct{}),
		due:     map[string][]jobs.Grant{},
		hold:    map[string]*hand{},
		free:    map[jobs.ID]bool{},
		hints:   make(chan struct{}, 1),
		record:  record{ended: map[jobs.ID]int{}, running: map[jobs.ID]bool{}},
	}
	w.close = sync.OnceFunc(func() { close(w.shut) })
	t.Cleanup(w.close)
	return w
}

// update changes the world.
func (w *world) update(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// until waits until f returns true. f is called with the lock held.
func (w *world) until(t *testing.T, what string, f func() bool) {
	t.Helper()
	timeout := time.After(patience)
	for {
		w.mu.Lock()
		ok, changed := f(), w.changed
		w.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			w.mu.Lock()
			defer w.mu.Unlock()
			t.Fatalf("waited in vain until %s; node %+v, ended %v, running %v, backs %v, losses %v, %d takes",
				what, w.beat, w.ended, w.running, w.backs, w.losses, len(w.takes))
		}
	}
}

// put makes jobs due, one for each host. The words of a host's name decide what the child
// does.
func (w *world) put(zone string, hosts ...string) []jobs.ID {
	var ids []jobs.ID
	w.update(func() {
		for _, h := range hosts {
			id := jobs.NewID("0000000000", h)
			g := jobs.Grant{Job: id, Token: jobs.Token(len(w.due[zone]) + 1), Mode: jobs.ModeFresh}
			if h == "brief" { // a second is left of it after its margin
				g.Timeout = 4 * time.Second
			}
			w.due[zone] = append(w.due[zone], g)
			ids = append(ids, id)
		}
	})
	return ids
}

// release lets jobs end.
func (w *world) release(ids ...jobs.ID) {
	w.update(func() {
		for _, id := range ids {
			w.free[id] = true
		}
	})
}

// answer returns the fault that the world shows as the error of a call, if any.
func (w *world) answer() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down
}

func (w *world) Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error) {
	if err := w.answer(); err != nil {
		return jobs.Reply{}, err
	}
	var reply jobs.Reply
	var err error
	var stalled chan struct{}
	w.update(func() {
		reply = w.step(zone, s)
		if w.forget > 0 {
			w.forget--
			err = errors.New("connection reset")
		}
		stalled = w.stalled
	})
	if stalled != nil {
		select {
		case <-stalled:
		case <-w.shut:
		case <-ctx.Done():
			return jobs.Reply{}, ctx.Err()
		}
	}
	return reply, err
}

func (w *world) step(zone string, s jobs.Step) jobs.Reply {
	if s.Want > 0 {
		w.takes = append(w.takes, s)
	}
	key := zone + " " + s.Slot
	if h := w.hold[key]; h != nil && h.request == s.Request {
		return h.reply
	}
	now := jobs.MicrosOf(time.Now())
	reply := jobs.Reply{Status: jobs.StatusNext, Now: now}
	h := w.hold[key]
	for _, r := range s.Results {
		i := -1
		if h != nil {
			i = slices.IndexFunc(h.jobs, func(g jobs.Grant) bool { return g.Job == r.Job && g.Token == r.Token })
		}
		if i < 0 {
			reply.Late = append(reply.Late, r.Job)
			continue
		}
		delete(w.running, r.Job)
		if r.Kind == jobs.KindBack {
			w.backs = append(w.backs, r.Job)
			w.due[zone] = append(w.due[zone], h.jobs[i])
		} else {
			w.ended[r.Job]++
		}
	}
	n := min(s.Want, len(w.due[zone]))
	if w.frozen != "" {
		reply.Status, reply.Why, reply.Next = jobs.StatusFrozen, w.frozen, now.Add(time.Minute)
	} else if n > 0 {
		w.grants = append(w.grants, time.Now())
		reply.Status = jobs.StatusJobs
		reply.Jobs = slices.Clone(w.due[zone][:n])
		w.due[zone] = w.due[zone][n:]
	} else if w.next > 0 {
		reply.Next = now.Add(w.next)
	}
	w.hold[key] = &hand{s.Node, s.Request, reply, reply.Jobs}
	return reply
}

func (w *world) Lose(_ context.Context, zone string, l jobs.Loss) ([]jobs.ID, error) {
	if err := w.answer(); err != nil {
		return nil, err
	}
	var ids []jobs.ID
	w.update(func() {
		key := zone + " " + l.Slot
		if h := w.hold[key]; h != nil {
			for _, g := range h.jobs {
				ids = append(ids, g.Job)
				delete(w.running, g.Job)
			}
			delete(w.hold, key)
		}
		w.lost = append(w.lost, ids...)
		w.losses = append(w.losses, l)
	})
	return ids, nil
}

func (w *world) Held(_ context.Context, zone, node string) (map[string][]jobs.ID, error) {
	if err := w.answer(); err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[string][]jobs.ID{}
	for key, h := range w.hold {
		var z, slot string
		fmt.Sscan(key, &z, &slot)
		if z != zone || h.node != node {
			continue
		}
		held[slot] = nil
		for _, g := range h.jobs {
			held[slot] = append(held[slot], g.Job)
		}
	}
	return held, nil
}

func (w *world) Beat(_ context.Context, n jobs.Node) error {
	if err := w.answer(); err != nil {
		return err
	}
	w.update(func() { w.beat, w.beats = n, w.beats+1 })
	return nil
}

func (w *world) Gone(context.Context, string) error {
	w.update(func() { w.gone = true })
	return w.down
}

func (w *world) Wake(context.Context, []string) (<-chan struct{}, func(), error) {
	return w.hints, func() {}, nil
}

// wait is called by a job at work; it returns when the test lets the job end.
func (w *world) wait(id jobs.ID) {
	w.update(func() {
		w.running[id] = true
		w.most = max(w.most, len(w.running))
	})
	for {
		w.mu.Lock()
		free, changed := w.free[id], w.changed
		w.mu.Unlock()
		if free {
			return
		}
		select {
		case <-changed:
		case <-w.shut:
			return
		}
	}
}

// serve opens the world to other processes and returns its address.
func (w *world) serve(t *testing.T) string {
	t.Helper()
	address := filepath.Join(t.TempDir(), "world")
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer()
	if err := server.Register(&Gate{w}); err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { server.ServeCodec(jsonrpc.NewServerCodec(c)) })
		}
	})
	t.Cleanup(func() {
		w.close()
		l.Close()
		serving.Wait() // until every process of the test has ended
	})
	return address
}

// Gate serves the world to other processes.
type Gate struct{ w *world }

// StepArgs are the arguments of Step.
type StepArgs struct {
	Zone string
	Step jobs.Step
}

// LoseArgs are the arguments of Lose.
type LoseArgs struct {
	Zone string
	Loss jobs.Loss
}

// Step calls Step of the world.
func (g *Gate) Step(a StepArgs, reply *jobs.Reply) (err error) {
	*reply, err = g.w.Step(context.Background(), a.Zone, a.Step)
	return err
}

// Lose calls Lose of the world.
func (g *Gate) Lose(a LoseArgs, reply *[]jobs.ID) error {
	ids, err := g.w.Lose(context.Background(), a.Zone, a.Loss)
	*reply = append([]jobs.ID{}, ids...) // the protocol has no nil
	return err
}

// Held calls Held of the world.
func (g *Gate) Held(zone string, reply *map[string][]jobs.ID) (err error) {
	*reply, err = g.w.Held(context.Background(), zone, "n1")
	return err
}

// Beat calls Beat of the world.
func (g *Gate) Beat(n jobs.Node, _ *bool) error { return g.w.Beat(context.Background(), n) }

// Gone calls Gone of the world.
func (g *Gate) Gone(node string, _ *bool) error { return g.w.Gone(context.Background(), node) }

// Drained counts an order to drain that a child has received.
func (g *Gate) Drained(int, *bool) error {
	g.w.update(func() { g.w.drains++ })
	return nil
}

// Wait blocks until the test lets a job of a child end.
func (g *Gate) Wait(id jobs.ID, _ *bool) error {
	g.w.wait(id)
	return nil
}

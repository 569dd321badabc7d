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

// A world is all that is around a master in a test: a queue and a hub in memory,
// which keep a record of what happens and let a test wait for it.
type world struct {
	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	shut    chan struct{} // closed at the end of the test
	close   func()        // closes it

	due   map[string][]jobs.Grant // by zone
	hold  map[string]*hand        // by zone and slot
	free  map[jobs.ID]bool        // may end
	hints chan struct{}
	next  time.Duration // of a reply without jobs; 0: nothing is queued

	record
	faults
}

// record is what has happened.
type record struct {
	ended   map[jobs.ID]int
	running map[jobs.ID]bool // waits for free
	most    int              // as many ran at a time
	backs   []jobs.ID
	losses  []jobs.Loss
	lost    []jobs.ID
	takes   []jobs.Step // calls with a want
	grants  []time.Time // when such a call got jobs
	beat    jobs.Node
	beats   int
	drains  int // orders to drain that children have heard
	gone    bool
}

// faults are what goes wrong.
type faults struct {
	down    error         // what every call answers
	forget  int           // so many steps are done, but not answered
	stalled chan struct{} // steps are done, but answered only once it is closed
	frozen  string        // why nothing is handed out, for a minute
}

// hand is what a slot has.
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

// until waits for the world to be as f wants it. f is called with the lock held.
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

// put makes jobs due, one for each host. The words of a host's name say what the
// child does.
func (w *world) put(zone string, hosts ...string) []jobs.ID {
	var ids []jobs.ID
	w.update(func() {
		for _, h := range hosts {
			id := jobs.NewID("0000000000", h)
			g := jobs.Grant{Job: id, Token: jobs.Token(len(w.due[zone]) + 1), Mode: jobs.ModeFresh}
			if h == "brief" { // a second is left of it, after its margin
				g.Timeout = 4 * time.Second
			}
			w.due[zone] = append(w.due[zone], g)
			ids = append(ids, id)
		}
	})
	return ids
}

// release lets jobs end that wait for it.
func (w *world) release(ids ...jobs.ID) {
	w.update(func() {
		for _, id := range ids {
			w.free[id] = true
		}
	})
}

// answer makes a fault of the world out of a reply.
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

// wait is a job at work: it returns when the test lets it end.
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

// Gate is the world for other processes.
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

// Step is that of the queue.
func (g *Gate) Step(a StepArgs, reply *jobs.Reply) (err error) {
	*reply, err = g.w.Step(context.Background(), a.Zone, a.Step)
	return err
}

// Lose is that of the queue.
func (g *Gate) Lose(a LoseArgs, reply *[]jobs.ID) error {
	ids, err := g.w.Lose(context.Background(), a.Zone, a.Loss)
	*reply = append([]jobs.ID{}, ids...) // the protocol has no nil
	return err
}

// Held is that of the queue.
func (g *Gate) Held(zone string, reply *map[string][]jobs.ID) (err error) {
	*reply, err = g.w.Held(context.Background(), zone, "n1")
	return err
}

// Beat is that of the hub.
func (g *Gate) Beat(n jobs.Node, _ *bool) error { return g.w.Beat(context.Background(), n) }

// Gone is that of the hub.
func (g *Gate) Gone(node string, _ *bool) error { return g.w.Gone(context.Background(), node) }

// Drained notes that a child was told to drain.
func (g *Gate) Drained(int, *bool) error {
	g.w.update(func() { g.w.drains++ })
	return nil
}

// Wait lets a job of a child be at work.
func (g *Gate) Wait(id jobs.ID, _ *bool) error {
	g.w.wait(id)
	return nil
}

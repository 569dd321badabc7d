package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"
)

// A fault is one kind of harm.
type fault struct {
	name   string
	weight int           // how often, beside the others
	gap    time.Duration // at least so long after the last one
	most   int           // jobs of which nobody knows then what they did, at most
	harm   func(s *saboteur) (given bool)
}

// faults are all kinds, in a house of so many versions. Those that last run beside the others.
func faults(versions int) []fault {
	const nodeJobs = children * slots
	var more []fault
	if versions > 1 {
		more = changes()
	}
	return append(more, []fault{
		{"kill -9 a child", 12, 0, slots, (*saboteur).killChild},
		{"kill -9 a master", 2, 5 * time.Second, 0, (*saboteur).killMaster},
		{"kill -9 a server", 2, 5 * time.Second, 0, (*saboteur).killServer},
		{"stop a child past its lock", 1, lockTime, slots, (*saboteur).stopChild},
		{"stop a master past the locks", 1, lockTime, nodeJobs, (*saboteur).stopMaster},
		{"stop a whole node past its locks", 1, 2 * lockTime, nodeJobs, (*saboteur).stopNode},
		{"stall the network to Redis", 4, 0, 0, (*saboteur).stall},
		{"cut all connections to Redis", 4, 0, 0, (*saboteur).cut},
		{"swallow answers of Redis", 6, 0, 0, (*saboteur).swallow},
		{"stop Redis for a while", 1, 20 * time.Second, 0, (*saboteur).stopRedis},
		{"kill -9 Redis, start it again", 1, 100 * time.Second, 0, (*saboteur).killRedis},
		{"part a node from the world", 2, 20 * time.Second, nodeJobs, (*saboteur).part},
	}...)
}

// A saboteur gives one fault after the other.
type saboteur struct {
	h      *house
	r      *rand.Rand
	list   []fault
	given  *tally
	last   map[string]time.Time
	lasts  sync.WaitGroup // faults that last
	cancel context.CancelFunc
	ctx    context.Context // until heal

	mu     sync.Mutex
	stands map[string]bool // folders of nodes of which something was stopped
}

func newSaboteur(h *house) *saboteur {
	s := &saboteur{h: h, r: rand.New(rand.NewPCG(*seed, 1)), list: faults(len(h.all)), last: map[string]time.Time{},
		stands: map[string]bool{}}
	var names []string
	for _, f := range s.list {
		names = append(names, f.name)
	}
	s.given = newTally(names...)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// work gives every kind once, in a random order, then at random.
func (s *saboteur) work(ctx context.Context) {
	if !pause(ctx, 3*time.Second) {
		return
	}
	first := s.r.Perm(len(s.list))
	for {
		f := s.pick()
		if len(first) > 0 {
			f = s.list[first[0]]
		}
		switch {
		case time.Since(s.last[f.name]) < f.gap:
		case !f.harm(s): // there is nobody to be harmed just now
		default:
			s.given.add(f.name, 1)
			s.last[f.name] = time.Now()
			if len(first) > 0 {
				first = first[1:]
			}
		}
		if !pause(ctx, between(s.r, 200*time.Millisecond, 3*time.Second)) {
			return
		}
	}
}

func (s *saboteur) pick() fault {
	sum := 0
	for _, f := range s.list {
		sum += f.weight
	}
	n := s.r.IntN(sum)
	for _, f := range s.list {
		if n -= f.weight; n < 0 {
			return f
		}
	}
	return s.list[0]
}

// heal ends all faults that last.
func (s *saboteur) heal() {
	s.cancel()
	s.lasts.Wait()
}

func (s *saboteur) counts() []count { return s.given.counts() }

// mayBeUnknown is of how many jobs nobody can know what they did.
func (s *saboteur) mayBeUnknown() int {
	n := 0
	for _, f := range s.list {
		n += f.most * s.given.get(f.name)
	}
	return n
}

func (s *saboteur) node() *node   { return s.h.nodes[s.r.IntN(len(s.h.nodes))] }
func (s *saboteur) server() *node { return s.h.servers[s.r.IntN(len(s.h.servers))] }

// network is that of a node or of a server.
func (s *saboteur) network() *proxy {
	return slices.Concat(s.h.nodes, s.h.servers)[s.r.IntN(len(s.h.nodes)+len(s.h.servers))].proxy
}

// lasting lets a fault go on beside others, at most until all is healed.
func (s *saboteur) lasting(d time.Duration, end func()) {
	s.lasts.Go(func() {
		pause(s.ctx, d)
		end()
	})
}

// pastLock returns how long something must stand still so that its locks end.
func (s *saboteur) pastLock() time.Duration {
	return lockTime + between(s.r, time.Second, 12*time.Second)
}

// child is one that works on a node; 0: none.
func (s *saboteur) child() int {
	_, list := pids(s.node().dir)
	if len(list) == 0 {
		return 0
	}
	return list[s.r.IntN(len(list))]
}

func (s *saboteur) killChild() bool {
	pid := s.child()
	return pid != 0 && syscall.Kill(pid, syscall.SIGKILL) == nil
}

func (s *saboteur) killMaster() bool {
	n, away := s.node(), between(s.r, time.Millisecond, 4*time.Second)
	n.signal(syscall.SIGKILL, away)
	return true
}

func (s *saboteur) killServer() bool {
	n, away := s.server(), between(s.r, time.Millisecond, 2*time.Second)
	n.signal(syscall.SIGKILL, away)
	return true
}

// stand stops processes of a node and lets them go on later.
func (s *saboteur) stand(dir string, list ...int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stands[dir] || len(list) == 0 {
		return false
	}
	s.stands[dir] = true
	for _, pid := range list {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	s.lasting(s.pastLock(), func() {
		// Only those that are still ours: others may have their numbers by now.
		masters, children := pids(dir)
		for _, pid := range append(masters, children...) {
			syscall.Kill(pid, syscall.SIGCONT)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stands[dir] = false
	})
	return true
}

// stopChild is mostly seen by the master, which kills a child that passes its
// deadline.
func (s *saboteur) stopChild() bool {
	dir := s.node().dir
	_, list := pids(dir)
	if len(list) == 0 {
		return false
	}
	return s.stand(dir, list[s.r.IntN(len(list))])
}

func (s *saboteur) stopMaster() bool {
	dir := s.node().dir
	masters, _ := pids(dir)
	return len(masters) > 0 && s.stand(dir, masters...)
}

// stopNode lets children come back after their locks have ended, when their jobs
// belong to others.
func (s *saboteur) stopNode() bool {
	dir := s.node().dir
	masters, list := pids(dir)
	return len(list) > 0 && s.stand(dir, append(masters, list...)...)
}

func (s *saboteur) stall() bool {
	p, d := s.network(), between(s.r, 300*time.Millisecond, 6*time.Second)
	s.lasts.Go(func() { p.stall(d) })
	return true
}

func (s *saboteur) cut() bool {
	s.network().cut()
	return true
}

func (s *saboteur) swallow() bool {
	s.network().swallowed(1 + s.r.IntN(3))
	return true
}

func (s *saboteur) stopRedis() bool {
	redis := s.h.redis.Process()
	if redis.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	// Not beside others: nobody kills what stands.
	pause(s.ctx, between(s.r, time.Second, 5*time.Second))
	return redis.Signal(syscall.SIGCONT) == nil
}

func (s *saboteur) killRedis() bool {
	s.h.redis.Kill()
	pause(s.ctx, between(s.r, time.Millisecond, 3*time.Second))
	if err := s.h.redis.Start(); err != nil {
		s.h.t.Errorf("redis-server does not come back: %v", err)
	}
	return true
}

func (s *saboteur) part() bool {
	n := s.h.nodes[len(s.h.nodes)-1]
	end := func() { n.proxy.shut(false) }
	if n.cell == nil {
		n.proxy.shut(true)
	} else {
		if err := n.cell.link(false); err != nil {
			s.h.t.Error(err)
			return false
		}
		end = func() {
			if err := n.cell.link(true); err != nil {
				s.h.t.Error(err)
			}
		}
	}
	s.lasting(between(s.r, 2*time.Second, 18*time.Second), end)
	return true
}

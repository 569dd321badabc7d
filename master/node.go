package master

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/master/errands"
	"muster/master/zones"
)

// never is an instant of the boot clock that is never reached.
const never = zones.Never

// A node is the whole state of a master. It belongs to the goroutine of Run. All its
// instants are instants of the boot clock.
type node struct {
	cfg   Config // read by the node's goroutine only, because a reload changes it
	name  string
	queue Queue
	log   hclog.Logger
	waits waits

	slots slots // in use
	files lockFiles
	zones zones.Zones

	work     *errands.Work // the goroutines that wait in place of the node
	orders   <-chan order
	children *nursery
	stage    stage
	until    time.Duration // end of the stage; unused in the stage running
	upgrades progress      // progress of an upgrade

	face *face // keeps the hub informed
}

// A stage is a phase on the way of a node to its end.
type stage int

const (
	running     stage = iota
	draining          // children end after the jobs in hand
	ending            // children got SIGTERM
	killing           // children were killed; only calls are left
	surrendered       // Redis does not answer
)

// A progress is a phase on the way of a node to another binary.
type progress int

const (
	steady    progress = iota
	trying             // the new binary is on trial
	replacing          // the node waits for children that are not ready yet
)

func newNode(m *Master) *node {
	n := &node{
		cfg:    m.cfg,
		name:   m.cfg.Node,
		queue:  m.queue,
		log:    m.log.With("node", m.cfg.Node),
		waits:  m.waits,
		slots:  slots{},
		work:   errands.New(m.machine.Chance),
		orders: m.orders,
		face:   newFace(m.hub),
	}
	n.files = lockFiles{dir: m.cfg.Dir, take: m.machine.Lock, log: n.log, face: n.face}
	n.children = &nursery{log: n.log, machine: m.machine,
		note: func(text string) { n.face.note(&n.face.notes.start, text) }}
	n.children.allowed = m.first
	for _, name := range m.first.zones(m.cfg) {
		n.zones = append(n.zones, &zones.Zone{Name: name})
	}
	return n
}

// open takes the node's lock, finds the children that an earlier master has left, and
// begins to work.
func (n *node) open() error {
	if err := n.takeLock(); err != nil {
		return err
	}
	if err := n.unpack(); err != nil {
		n.files.master.Close()
		return err
	}
	if err := n.findOrphans(); err != nil {
		n.files.master.Close()
		return err
	}
	n.log.Info("master started", "pid", n.face.pid, "version", n.cfg.Version,
		"zones", strings.Join(n.cfg.Zones, ","), "children", n.cfg.Children, "in_use", len(n.slots))
	n.resume()
	return nil
}

func (n *node) takeLock() error {
	if len(n.cfg.Kept) > 0 {
		if len(n.cfg.Kept) < keptConns {
			return fmt.Errorf("%d files kept over the upgrade, want at least %d", len(n.cfg.Kept), keptConns)
		}
		n.files.master = proc.HeldLock(n.cfg.Kept[keptLock])
		return nil
	}
	lock, err := n.files.take(filepath.Join(n.cfg.Dir, "master.lock"))
	if err != nil {
		return fmt.Errorf("another master of this node runs already: %w", err)
	}
	n.files.master = lock
	if err := lock.Sign(proc.Holder{PID: n.face.pid, Text: "master of " + n.name}); err != nil {
		n.log.Warn("lock is not signed", "error", err)
	}
	return nil
}

// resume starts a goroutine for each child, call and orphan of the node: after its start,
// and again after a failed upgrade.
func (n *node) resume() {
	for _, s := range n.slots {
		switch {
		case s.child != nil:
			n.attend(s, nil)
		case s.call != nil:
			n.ask(s)
		default:
			n.watch(s)
		}
	}
	for _, z := range n.zones {
		if !z.Known {
			n.recover(z)
		}
	}
	n.listen()
	n.face.changed = true
}

// loop contains the one select: it runs the functions and orders that others send, and does
// all due work.
func (n *node) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	for !n.over() {
		select {
		case f := <-n.work.Events:
			f()
		case o := <-n.orders:
			o.run(n)
		case <-n.work.Hints:
			n.zones.Hint(n.children.machine.Boot())
		case <-timer.C:
		case <-ended:
			ended = nil
			n.stop("the context ended")
		}
		now := n.children.machine.Boot()
		// Timers stand still while the machine sleeps, so the timer must be short.
		timer.Reset(min(n.act(now)-now, n.cfg.Poll, n.cfg.pulse(n.stage, len(n.slots))))
	}
}

// act does all due work and returns when the next work is due.
func (n *node) act(now time.Duration) time.Duration {
	if n.upgrades == replacing && n.slots.unready() == 0 {
		n.replace()
	}
	return min(n.escalate(now), n.enforce(now), n.fill(now), n.beat(now))
}

// close ends whatever still runs after loop.
func (n *node) close() error {
	n.work.Cancel()
	for _, s := range n.slots {
		if s.child != nil { // not even a kill has ended this child
			n.log.Error("child does not end", "slot", s.name, "pid", s.child.proc.PID())
			if f, _, err := s.child.proc.Detach(); err == nil {
				f.Close()
			}
		}
	}
	n.work.Finish()
	n.face.gone(n.name, n.log)

	var left []string
	for _, s := range n.slots {
		s.free()
		if s.orphan == nil {
			left = append(left, s.name)
		}
	}
	n.log.Info("master ended", "unanswered", len(left))
	if len(left) > 0 {
		slices.Sort(left)
		return fmt.Errorf("node %s: redis did not answer, so the jobs of slots %s are not told to be "+
			"lost; they will be found when their locks end", n.name, strings.Join(left, ", "))
	}
	return nil
}

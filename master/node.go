package master

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
)

// never is an instant of the boot clock that does not come.
const never = time.Duration(math.MaxInt64)

// A node is all state of a master. It belongs to the goroutine of Run. Every
// instant in it is one of the boot clock.
type node struct {
	cfg   Config // only the node's goroutine may read it: a reload changes it
	name  string
	queue Queue
	log   hclog.Logger
	waits waits
	lock  *proc.LockFile // of the node

	slots map[string]*slot // those in use
	zones []*zone

	work     *work // the goroutines
	orders   <-chan order
	children *nursery
	stage    stage
	until    time.Duration // when the stage ends, if it is not running
	upgrades progress      // of the way to another binary

	face *face // what the hub sees
}

// stage is how far a node is on its way to the end.
type stage int

const (
	running     stage = iota
	draining          // children end after the jobs in hand
	ending            // children were asked to end now
	killing           // children were killed; what is left are calls
	surrendered       // Redis does not answer
)

// progress is how far a node is on its way to another binary.
type progress int

const (
	steady    progress = iota
	trying             // it is being tried
	replacing          // children that are not ready are waited for
)

func newNode(m *Master) *node {
	n := &node{
		cfg:      m.cfg,
		name:     m.cfg.Node,
		queue:    m.queue,
		log:      m.log.With("node", m.cfg.Node),
		waits:    m.waits,
		slots:    map[string]*slot{},
		work:     newWork(),
		orders:   m.orders,
		children: &nursery{parent: proc.NewParent()},
		face:     newFace(m.hub),
	}
	for _, name := range m.cfg.Zones {
		n.zones = append(n.zones, &zone{name: name})
	}
	return n
}

// open takes the node's lock, finds out which children an earlier master has left
// and begins to work.
func (n *node) open() error {
	if err := n.takeLock(); err != nil {
		return err
	}
	if err := n.unpack(); err != nil {
		n.lock.Close()
		return err
	}
	if err := n.findOrphans(); err != nil {
		n.lock.Close()
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
		n.lock = proc.HeldLock(n.cfg.Kept[keptLock])
		return nil
	}
	lock, err := proc.Lock(filepath.Join(n.cfg.Dir, "master.lock"))
	if err != nil {
		return fmt.Errorf("another master of this node runs already: %w", err)
	}
	n.lock = lock
	if err := lock.Sign(proc.Holder{PID: n.face.pid, Text: "master of " + n.name}); err != nil {
		n.log.Warn("lock is not signed", "error", err)
	}
	return nil
}

// resume starts a goroutine for whatever is under way: for the state that was
// found, and again after an upgrade that failed.
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
		if !z.known {
			n.recover(z)
		}
	}
	n.listen()
	n.face.changed = true
}

// loop is the one select: it runs what others ask for and does what is due.
func (n *node) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	for !n.over() {
		select {
		case f := <-n.work.events:
			f()
		case o := <-n.orders:
			o.run(n)
		case <-n.work.hints:
			n.woken()
		case <-timer.C:
		case <-ended:
			ended = nil
			n.stop("the context ended")
		}
		now := proc.Boot()
		// Timers stand still while the machine sleeps, so they must be short.
		timer.Reset(min(n.act(now)-now, n.cfg.Poll))
	}
}

// act does all that is due and returns when it must be called again.
func (n *node) act(now time.Duration) time.Duration {
	if n.upgrades == replacing && n.unready() == 0 {
		n.replace()
	}
	return min(n.escalate(now), n.enforce(now), n.fill(now), n.beat(now))
}

// close ends what loop has left.
func (n *node) close() error {
	n.work.cancel()
	for _, s := range n.slots {
		if s.child != nil { // not even a kill has ended it
			n.log.Error("child does not end", "slot", s.name, "pid", s.child.proc.PID)
			if f, _, err := s.child.proc.Detach(); err == nil {
				f.Close()
			}
		}
	}
	n.work.finish()
	n.gone()

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

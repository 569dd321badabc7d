package master

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs"
)

// Queue is what a master needs of the queue. An error of any method means that
// it is not known whether the call was done; it is then repeated as it is.
type Queue interface {
	// Step gives back jobs and takes new ones. A repeated request id gets the
	// earlier answer.
	Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error)
	// Lose says that the child in a slot is gone, and returns the jobs it had.
	Lose(ctx context.Context, zone string, l jobs.Loss) ([]jobs.ID, error)
	// Held returns which jobs the slots of a node have.
	Held(ctx context.Context, zone, node string) (map[string][]jobs.ID, error)
}

// Hub is where a master shows itself.
type Hub interface {
	// Beat is a sign of life.
	Beat(ctx context.Context, n jobs.Node) error
	// Gone removes the node, at an orderly end.
	Gone(ctx context.Context, node string) error
	// Wake gives hints that something has become due, until the function that it
	// returns is called. The channel is never closed.
	Wake(ctx context.Context, zones []string) (<-chan struct{}, func(), error)
}

// A Master keeps the children of one node alive. Its methods may be called at
// any time and from any goroutine; once Run has returned they do nothing.
type Master struct {
	cfg    Config
	queue  Queue
	hub    Hub
	log    hclog.Logger
	waits  waits
	orders chan order
	ended  chan struct{} // closed when Run returns
}

// waits are the bounds that no operator has a reason to change.
type waits struct {
	// ready is how long a child may take to its first report. On a machine that
	// starts a few hundred at once it can be seconds.
	ready time.Duration

	// overdue is how long a child may ignore its deadline before it is killed. It
	// is less than jobs.Margin ever is, so that the child is dead before its locks
	// end.
	overdue time.Duration

	// term is how long a child may go on after it was asked to end. A worker uses
	// 10 s to tell Redis what it has stopped.
	term time.Duration

	// last is how long Redis may take to hear of the jobs of killed children.
	last time.Duration
}

func defaultWaits() waits {
	return waits{
		ready: 30 * time.Second, overdue: time.Second, term: 15 * time.Second, last: 5 * time.Second,
	}
}

// New returns a Master, which does nothing before Run.
func New(cfg Config, q Queue, h Hub, log hclog.Logger) (*Master, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Master{
		cfg:    cfg,
		queue:  q,
		hub:    h,
		log:    log,
		waits:  defaultWaits(),
		orders: make(chan order, 16),
		ended:  make(chan struct{}),
	}, nil
}

// Run keeps the node working until it was drained or stopped. The end of ctx is
// the same as Stop. It can be called once.
//
// The error is a *proc.LockedError, which names the other, if a master of the
// node runs already.
func (m *Master) Run(ctx context.Context) error {
	defer close(m.ended)
	if err := proc.OwnDir(m.cfg.Dir); err != nil {
		return fmt.Errorf("node.dir: %w", err)
	}
	n := newNode(m)
	if err := n.open(); err != nil {
		return err
	}
	defer n.lock.Close()
	n.loop(ctx)
	return n.close()
}

// Drain takes nothing new, tells the children to end after the jobs in hand, and
// lets Run return when they have. Children that are still there after
// Config.Drain are stopped.
func (m *Master) Drain() { m.tell(order{run: (*node).drain, ends: true}) }

// Stop kills the children now, tells which jobs they had, and lets Run return.
func (m *Master) Stop() {
	m.tell(order{run: func(n *node) { n.stop("stop") }, ends: true})
}

// Reload takes over another configuration: children end after the jobs in hand,
// and new ones come with it. A bad one is refused: the old stays, and the node's
// note and the log say why. Try, Exec and Kept stay as they are.
func (m *Master) Reload(cfg Config) { m.tell(order{run: func(n *node) { n.reload(cfg) }}) }

// Refuse tells people that a configuration could not even be read. The old one
// stays.
func (m *Master) Refuse(err error) { m.tell(order{run: func(n *node) { n.refuse(err) }}) }

// Upgrade puts the binary at Config.Path in the place of this one, if its trial
// goes well. The children live on; they end after the jobs in hand, and new ones
// are of the new binary. If that fails everything goes on as before, and the
// node's note says why.
func (m *Master) Upgrade() { m.tell(order{run: (*node).upgrade}) }

// An order is what somebody wants of the node.
type order struct {
	run  func(*node)
	ends bool // the node shall end: an upgrade must not forget this
}

func (m *Master) tell(o order) {
	select {
	case m.orders <- o:
	case <-m.ended:
	}
}

package master

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs"
)

// Queue holds the methods of the queue that a master uses. After an error of any method it
// is not known whether the queue has done the call; the master then repeats the same call.
type Queue interface {
	// Step returns jobs to the queue and takes new ones. A repeated request id gets the
	// earlier answer.
	Step(ctx context.Context, zone string, s jobs.Step) (jobs.Reply, error)
	// Lose reports that the child in a slot is gone, and returns the jobs that it had.
	Lose(ctx context.Context, zone string, l jobs.Loss) ([]jobs.ID, error)
	// Held returns the jobs that each slot of a node has.
	Held(ctx context.Context, zone, node string) (map[string][]jobs.ID, error)
}

// Hub holds the methods with which a master shows itself.
type Hub interface {
	// Beat stores the record of the node, as a sign of life.
	Beat(ctx context.Context, n jobs.Node) error
	// Gone removes the record of the node, at an orderly end.
	Gone(ctx context.Context, node string) error
	// Wake sends hints that a job may have become due, until the returned function is
	// called. The channel is never closed.
	Wake(ctx context.Context, zones []string) (<-chan struct{}, func(), error)
}

// A Master keeps the children of one node alive. Its methods may be called at
// any time and from any goroutine; once Run has returned they do nothing.
type Master struct {
	cfg     Config
	queue   Queue
	hub     Hub
	log     hclog.Logger
	waits   waits
	machine Machine
	orders  chan order
	ended   chan struct{} // closed when Run returns
	first   Allowance
}

// waits are the bounds that no operator has a reason to change.
type waits struct {
	// ready bounds the time from the start of a child to its first report. A machine that
	// starts a few hundred children at once can need seconds.
	ready time.Duration

	// look bounds the time in which an idle child obeys an order to look.
	look time.Duration

	// overdue is the time from the deadline of a child to its kill. It is always less than
	// jobs.Margin, so that the child is dead before its locks end.
	overdue time.Duration

	// term is the time between SIGTERM and the kill of a child. A worker needs up to 10 s of
	// it to tell Redis which jobs it has stopped.
	term time.Duration

	// last bounds the time in which the master tries to tell Redis about the jobs of killed
	// children.
	last time.Duration
}

func defaultWaits() waits {
	return waits{
		ready: 30 * time.Second, look: time.Minute, overdue: time.Second, term: 15 * time.Second,
		last: 5 * time.Second,
	}
}

// New returns a Master on this machine, which does nothing before Run.
func New(cfg Config, q Queue, h Hub, log hclog.Logger) (*Master, error) {
	return ThisMachine().Master(cfg, q, h, log)
}

// Master returns a Master on m, which does nothing before Run.
func (m Machine) Master(cfg Config, q Queue, h Hub, log hclog.Logger) (*Master, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Master{
		cfg:     cfg,
		queue:   q,
		hub:     h,
		log:     log,
		waits:   defaultWaits(),
		machine: m,
		orders:  make(chan order, 16),
		ended:   make(chan struct{}),
	}, nil
}

// Run keeps the node working until Drain or Stop ends it. The end of ctx has the effect of
// Stop. Run can be called once.
//
// If another master of the node runs already, the error is a *proc.LockedError that names
// it.
func (m *Master) Run(ctx context.Context) error {
	defer close(m.ended)
	if err := proc.OwnDir(m.cfg.Dir); err != nil {
		return fmt.Errorf("node.dir: %w", err)
	}
	n := newNode(m)
	if err := n.open(); err != nil {
		return err
	}
	defer n.files.master.Close()
	n.loop(ctx)
	return n.close()
}

// Drain lets the node take no new jobs, orders the children to end after the jobs in hand,
// and lets Run return when they have ended. Children that still run after Config.Drain are
// stopped.
func (m *Master) Drain() { m.tell(order{run: (*node).drain, ends: true}) }

// Stop kills the children now, reports their jobs as lost, and lets Run return.
func (m *Master) Stop() {
	m.tell(order{run: func(n *node) { n.stop("stop") }, ends: true})
}

// Reload puts another configuration in force: the children end after the jobs in hand, and
// the next children get the new configuration. If the new one has a mistake, the old one
// stays in force, and the node's note and the log give the reason. Try, Exec, Pulse and Kept
// stay as they are.
func (m *Master) Reload(cfg Config) { m.tell(order{run: func(n *node) { n.reload(cfg) }}) }

// Refuse shows in the node's note and in the log that a new configuration could not even be
// read. The old one stays in force.
func (m *Master) Refuse(err error) { m.tell(order{run: func(n *node) { n.refuse(err) }}) }

// Distrust shows why the node cannot read whom it trusts, so that its children begin no jobs;
// empty: it can.
func (m *Master) Distrust(why string) {
	m.tell(order{run: func(n *node) { n.face.note(&n.face.unread, why) }})
}

// Upgrade puts the binary at Config.Path in the place of this one, if its trial succeeds.
// The children live on and end after the jobs in hand; the next children are started from
// the new binary. If the upgrade fails, the node works on as before, and its note gives the
// reason.
func (m *Master) Upgrade() { m.tell(order{run: (*node).upgrade}) }

// An order is a call of one of the Master's methods, on its way to the node's goroutine.
type order struct {
	run  func(*node)
	ends bool // the order ends the node: an upgrade must not forget it
}

func (m *Master) tell(o order) {
	select {
	case m.orders <- o:
	case <-m.ended:
	}
}

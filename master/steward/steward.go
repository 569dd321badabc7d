package steward

import (
	"context"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/staff"
	"muster/master"
	"muster/master/governor"
	"muster/master/sensors"
	"muster/trust"
)

// Config says what a steward looks at. A reload gives a node another one.
type Config struct {
	Every    time.Duration // between two looks at the machine; 0: none
	Limits   governor.Limits
	Ramp     bool // the more children run, the fewer and the later begin others
	Children int
	Standby  map[string]time.Duration // zones to stand in for, and after which time
	Root     string                   // of the machine that is measured; empty: /
}

// Validate reports all mistakes at once, each with the name of its key.
func (c Config) Validate(bad func(is bool, format string, args ...any)) {
	bad(c.Every < 0 || c.Every > 0 && c.Every < everyMin,
		"every = %s: want 0 (off), or %s or more", c.Every, everyMin)
	c.Limits.Validate(bad)
}

const (
	everyMin = 100 * time.Millisecond

	// beatsEvery is the time between two looks of a standby at the other nodes.
	beatsEvery = 5 * time.Second

	// callMax bounds a call of Redis.
	callMax = 5 * time.Second
)

// Hub holds the methods of the queue that a steward uses.
type Hub interface {
	// NodeOrder returns the last order about a node, as servers have written it; empty: none.
	NodeOrder(ctx context.Context, node string) (string, error)
	// Ordered says that there may be another order about the node.
	Ordered() <-chan struct{}
	Nodes(ctx context.Context) ([]jobs.Node, error)
}

// A Node is whom a steward serves.
type Node struct {
	Name  string
	Dir   string
	Trust func() (*trust.Rules, error) // nil: Redis is believed
	Boot  func() time.Duration
}

// A Steward looks after one node.
type Steward struct {
	node Node
	hub  Hub
	log  hclog.Logger
	next chan Config

	busy    atomic.Int64 // children at work
	cfg     Config
	judge   *governor.Governor
	standby *staff.Standby
	order   *trust.NodeOrder
	allowed master.Allowance
	said    map[string]string // subject to what was logged of it last
}

// New returns a steward that does nothing before First.
func New(n Node, c Config, h Hub, log hclog.Logger) *Steward {
	if n.Boot == nil {
		n.Boot = proc.Boot
	}
	s := &Steward{node: n, hub: h, log: log, next: make(chan Config, 1), said: map[string]string{}}
	s.take(c)
	return s
}

// Beside returns a pulse of a master that also tells the steward how many children are at work.
func (s *Steward) Beside(pulse func(master.Sign) time.Duration) func(master.Sign) time.Duration {
	return func(sign master.Sign) time.Duration {
		s.busy.Store(int64(sign.Children))
		if pulse == nil {
			return idlePulse
		}
		return pulse(sign)
	}
}

// idlePulse is longer than any other wait of a master.
const idlePulse = time.Hour

// Reload puts another configuration in force.
func (s *Steward) Reload(c Config) {
	for {
		select {
		case s.next <- c:
			return
		case <-s.next: // one that nobody has seen yet
		}
	}
}

func (s *Steward) take(c Config) {
	if s.judge == nil || c.Limits != s.cfg.Limits {
		s.judge = governor.New(c.Limits)
	}
	if s.standby == nil || !maps.Equal(c.Standby, s.cfg.Standby) {
		s.standby = staff.NewStandby(c.Standby)
		zones, err := readZones(s.node.Dir)
		s.say("standby", err)
		s.standby.Resume(s.node.Boot(), zones)
		s.allowed.Zones = slices.DeleteFunc(zones, func(zone string) bool { return c.Standby[zone] == 0 })
	}
	s.cfg = c
}

// First returns the allowance with which the master begins.
func (s *Steward) First(ctx context.Context) master.Allowance {
	kept, err := readOrder(s.node.Dir, s.node.Name)
	s.say("order", err)
	if err != nil { // it may have been a pause, and any later order ends this one
		kept = &trust.NodeOrder{Node: s.node.Name, Paused: true, Note: err.Error()}
	}
	s.order = kept
	s.learn(ctx)
	s.measure()
	return s.allowance()
}

// Run tells a master each change of its allowance, until the context is done.
func (s *Steward) Run(ctx context.Context, tell func(master.Allowance)) {
	machine, others := ticker(s.cfg.Every), ticker(s.watching())
	defer func() { machine.Stop(); others.Stop() }()
	told := s.allowance()
	for {
		select {
		case <-machine.C:
			s.measure()
		case <-others.C:
			s.look(ctx)
		case <-s.hub.Ordered():
			s.learn(ctx)
		case c := <-s.next:
			s.take(c)
			machine.Stop()
			others.Stop()
			machine, others = ticker(s.cfg.Every), ticker(s.watching())
			s.measure()
		case <-ctx.Done():
			return
		}
		if is := s.allowance(); !same(told, is) {
			told = is
			tell(is)
		}
	}
}

// ticker returns a ticker; one that never ticks if there is nothing to do.
func ticker(every time.Duration) *time.Ticker {
	t := time.NewTicker(max(every, time.Millisecond))
	if every == 0 {
		t.Stop()
	}
	return t
}

func (s *Steward) watching() time.Duration {
	if len(s.cfg.Standby) == 0 {
		return 0
	}
	return beatsEvery
}

// allowance puts together what is known.
func (s *Steward) allowance() master.Allowance {
	s.allowed.Paused, s.allowed.Cores = nil, 0
	if s.order != nil && s.order.Paused {
		s.allowed.Paused = &jobs.Pause{Note: s.order.Note, At: jobs.Time{Time: s.order.At}}
	}
	if s.cfg.Ramp {
		s.allowed.Cores = runtime.NumCPU()
	}
	return s.allowed
}

// measure looks at the machine.
func (s *Steward) measure() {
	if s.cfg.Every == 0 {
		s.allowed.Governor = nil
		return
	}
	m := sensors.Machine{Root: s.cfg.Root, Dirs: []string{s.node.Dir}, Core: float64(runtime.NumCPU())}
	if m.Root == "" {
		m.Root = "/"
	}
	all, err := m.Read()
	s.say("sensors", err)
	v := s.judge.Judge(s.node.Boot(), all, int(s.busy.Load()), s.cfg.Children)
	g := &jobs.Governor{Starved: v.Starved, Children: v.Children, Why: v.Texts(), Kinds: []string{}}
	for _, kind := range v.Kinds() {
		g.Kinds = append(g.Kinds, string(kind))
	}
	s.allowed.Governor = g
}

// learn reads the order about the node. One that is not believed changes nothing, nor does one that
// is gone: whoever can write to Redis must not end a pause.
func (s *Steward) learn(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	text, err := s.hub.NodeOrder(ctx, s.node.Name)
	if err != nil || text == "" {
		s.say("hub", err)
		return
	}
	o, err := s.read(text)
	s.say("order in Redis", err)
	if err != nil || s.order != nil && o.Number <= s.order.Number {
		return
	}
	s.order = o
	s.say("order", keepOrder(s.node.Dir, text))
	s.log.Info("order about this node", "paused", o.Paused, "note", o.Note)
}

// read reads an order, if it is to be believed.
func (s *Steward) read(text string) (*trust.NodeOrder, error) {
	if s.node.Trust == nil {
		return trust.ReadNodeOrder(text, s.node.Name, "", nil)
	}
	rules, err := s.node.Trust()
	if err != nil {
		return nil, err
	}
	by := rules.At(time.Now())
	return trust.ReadNodeOrder(text, s.node.Name, rules.Keys.Installation(), &by)
}

// look decides for which zones the node stands in. Without an answer it changes nothing.
func (s *Steward) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callMax)
	defer cancel()
	nodes, err := s.hub.Nodes(ctx)
	s.say("hub", err)
	if err != nil {
		return
	}
	others := slices.DeleteFunc(nodes, func(n jobs.Node) bool { return n.ID == s.node.Name })
	zones := s.standby.Look(s.node.Boot(), others)
	if slices.Equal(zones, s.allowed.Zones) {
		return
	}
	s.log.Warn("this node stands in for the nodes of other zones", "zones", strings.Join(zones, ","),
		"before", strings.Join(s.allowed.Zones, ","))
	s.allowed.Zones = zones
	s.say("standby", keepZones(s.node.Dir, zones))
}

// say logs a change of what is wrong with a subject.
func (s *Steward) say(subject string, err error) {
	text := ""
	if err != nil {
		text = wording.ErrorLine(err)
	}
	if text == s.said[subject] {
		return
	}
	s.said[subject] = text
	if text != "" {
		s.log.Error("this node is not looked after as it should be", "subject", subject, "error", text)
	} else {
		s.log.Info("all is well again", "subject", subject)
	}
}

// same reports whether two allowances let a node do the same for the same reasons. Numbers in the
// reasons change at each look, so reasons count by their kind.
func same(a, b master.Allowance) bool {
	if (a.Governor == nil) != (b.Governor == nil) || (a.Paused == nil) != (b.Paused == nil) ||
		a.Cores != b.Cores || !slices.Equal(a.Zones, b.Zones) {
		return false
	}
	if a.Paused != nil && *a.Paused != *b.Paused {
		return false
	}
	return a.Governor == nil || a.Governor.Starved == b.Governor.Starved &&
		a.Governor.Children == b.Governor.Children && slices.Equal(a.Governor.Kinds, b.Governor.Kinds)
}

// orderFile and zonesFile are in the folder of a node.
func orderFile(dir string) string { return filepath.Join(dir, "order") }
func zonesFile(dir string) string { return filepath.Join(dir, "standby") }

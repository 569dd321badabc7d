package master

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/jobs"
	"muster/master/errands"
	"muster/windows"
)

const (
	// beatGap is the least time between two beats, however much changes.
	beatGap = time.Second

	// doubtKeep bounds the time for which the record of the node shows the doubt of a child.
	// The jobs that were deferred for the doubt are due again sooner, and then a child
	// repeats the doubt if it still has it.
	doubtKeep = time.Minute

	// goneWait bounds the call that signs the node off.
	goneWait = 2 * time.Second
)

// A face is the part of a node that keeps the hub informed.
type face struct {
	hub     Hub
	pid     int
	started jobs.Time
	notes   notes
	// services that do not answer and slots that are not signed: each is logged once
	failing map[string]bool
	deafen  func()        // stops listening for hints
	unread  string        // why the node cannot read whom it trusts; empty: it can
	doubt   string        // why a child did not know the windows and freezes …
	doubted time.Duration // … and when it reported so

	changed bool          // the record has changed since the last beat
	beating bool          // a beat is under way
	beaten  time.Duration // when the last beat was begun; 0: none
}

// notes are messages for the operator, one a subject; an empty one is not shown.
type notes struct {
	zones   string
	reload  string
	upgrade string
	start   string
	dir     string
}

func (s notes) String() string {
	var all []string
	for _, note := range []string{s.zones, s.reload, s.upgrade, s.start, s.dir} {
		if note != "" {
			all = append(all, note)
		}
	}
	return strings.Join(all, "; ")
}

func newFace(h Hub) *face {
	return &face{
		hub: h, pid: os.Getpid(), started: jobs.Time{Time: time.Now()},
		failing: map[string]bool{}, deafen: func() {},
	}
}

// note puts a message for the operator in the place of the last one about its subject.
func (f *face) note(which *string, text string) {
	if *which != text {
		*which, f.changed = text, true
	}
}

// beat sends the node's record to the hub, every Config.Beat and after changes, and returns
// when to send the next one.
func (n *node) beat(now time.Duration) time.Duration {
	f := n.face
	if f.beating || n.frozen() {
		return never
	}
	next := f.beaten + n.cfg.Beat
	if f.changed {
		next = f.beaten + min(beatGap, n.cfg.Beat)
	}
	if f.beaten > 0 && next > now {
		return next
	}
	f.changed, f.beating, f.beaten = false, true, now
	record := n.record()
	ctx := n.work.Ctx
	n.work.Wait.Go(func() {
		err := errands.Once(ctx, func(ctx context.Context) error { return f.hub.Beat(ctx, record) })
		n.work.Post(func() {
			f.beating = false
			if ctx.Err() == nil {
				f.changed = f.changed || err != nil
				n.trouble("hub", err)
			}
		})
	})
	return never
}

// record returns the state of the node as the hub shows it.
func (n *node) record() jobs.Node {
	r := jobs.Node{
		ID: n.name, PID: n.face.pid, State: n.stage.String(),
		Limit: n.cfg.Children, Slots: n.cfg.Slots,
		Children: []jobs.Child{},
		Version:  n.cfg.Version, Started: n.face.started, Seen: jobs.Time{Time: time.Now()},
		Note: n.face.notes.String(), Spawned: n.children.spawned,
		Identity: n.cfg.Identity,
	}
	r.Clock.Zones = windows.ZoneData
	r.Governor, r.Paused = n.children.allowed.Governor, n.children.allowed.Paused
	r.Zones, r.Standby = n.children.allowed.zones(n.cfg), n.children.allowed.Zones
	if n.face.doubt != "" && n.children.machine.Boot()-n.face.doubted < doubtKeep {
		r.Doubt = n.face.doubt
	}
	r.Doubt = cmp.Or(n.face.unread, r.Doubt)
	if err := proc.ClockKept(); err != nil {
		r.Clock.Loose = err.Error()
	}
	for _, s := range n.slots.inUse() {
		switch {
		case s.child != nil:
			c := s.child
			r.Children = append(r.Children, childRecord(c.proc.PID(), c.report.Jobs, false, c.version))
		case s.orphan != nil:
			r.Children = append(r.Children, childRecord(s.orphan.pid, s.orphan.jobs, true, ""))
		}
	}
	return r
}

func childRecord(pid int, ids []jobs.ID, orphan bool, version string) jobs.Child {
	c := jobs.Child{PID: pid, Orphan: orphan, Version: version}
	if len(ids) > 0 {
		c.Job = ids[0]
	}
	if len(ids) > 1 {
		c.Jobs = ids
	}
	return c
}

// String returns the stage as the hub shows it.
func (s stage) String() string {
	switch s {
	case running:
		return "running"
	case draining:
		return jobs.NodeDraining
	}
	return jobs.NodeStopping
}

// gone removes the node from the hub.
func (f *face) gone(name string, log hclog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), goneWait)
	defer cancel()
	if err := f.hub.Gone(ctx, name); err != nil {
		log.Warn("node is not signed off", "error", err)
	}
}

// trouble logs once that a service does not answer, and once that it answers again.
func (n *node) trouble(where string, err error) {
	was := n.face.failing[where]
	n.face.failing[where] = err != nil
	switch {
	case err != nil && !was:
		n.log.Error("no answer, asking again", "from", where, "error", err)
	case err == nil && was:
		n.log.Info("answers again", "from", where)
	default:
		return
	}
	n.noteZones()
}

// listen passes hints of due jobs on to the node. A hint that gets lost costs only time,
// because the node polls too.
func (n *node) listen() {
	n.face.deafen()
	ctx, deafen := context.WithCancel(n.work.Ctx)
	n.face.deafen = deafen
	w, zones := n.work, n.children.allowed.zones(n.cfg)
	w.Wait.Go(func() {
		tell := func(err error) { w.Post(func() { n.trouble("wake", err) }) }
		for try := 0; ; try++ {
			hints, stop, err := n.face.hub.Wake(ctx, zones)
			if err == nil {
				tell(nil)
				w.Pass(ctx, hints)
				stop()
				return
			}
			if ctx.Err() != nil {
				return
			}
			tell(err)
			select {
			case <-time.After(errands.Pause(try, rand.Float64(), errands.CallPause, startPauseMax)):
			case <-ctx.Done():
				return
			}
		}
	})
}

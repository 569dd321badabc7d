package master

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs"
)

// The positions of the files that are kept open over an upgrade.
const (
	keptState = iota
	keptLock
	keptConns // first of the children's sockets, which come last
)

// StateFormat is the version of the state that a binary hands to the next one. It changes
// whenever the new binary cannot read an older state any more; then the trial of the new
// binary must fail.
const StateFormat = 1

// state holds all that the next binary must know. A new field must make sense at its zero
// value, because the previous binary does not write it.
type state struct {
	Format  int       `json:"format"`
	PID     int       `json:"pid"`
	Started jobs.Time `json:"started"`
	Spawned int       `json:"spawned"`
	Known   []string  `json:"known"` // zones in which no jobs of earlier masters are left
	// all but the slots of orphans, which the next binary finds by their locks
	Slots []slotState `json:"slots"`
}

type slotState struct {
	Name  string      `json:"name"`
	Zone  string      `json:"zone"`
	Call  *call       `json:"call,omitempty"`
	Child *childState `json:"child,omitempty"`
}

type childState struct {
	PID  int `json:"pid"`
	Conn int `json:"conn"` // position of the socket among the files
	// bytes that were read from the socket, but not yet received as messages
	Unread   []byte        `json:"unread"`
	Started  time.Duration `json:"started"`
	Report   jobs.Report   `json:"report"`
	Deadline time.Duration `json:"deadline"`
	Doom     string        `json:"doom,omitempty"`
	Version  string        `json:"version"` // empty: an earlier muster wrote this state
}

// upgrade prepares to put another binary in the place of this one. An upgrade cannot be
// undone, so the new binary is tried first, and the node works on meanwhile.
func (n *node) upgrade() {
	switch {
	case n.cfg.Exec == nil:
		n.refuseUpgrade(errors.New("not possible here"))
	case n.stage != running:
		n.refuseUpgrade(fmt.Errorf("the master is %s", n.stage.String()))
	case n.upgrades != steady:
		n.log.Info("an upgrade is under way already", "path", n.cfg.Path)
	case n.cfg.Try == nil:
		n.tried(nil)
	default:
		n.log.Info("trying the new binary", "path", n.cfg.Path)
		n.upgrades = trying
		ctx, try := n.work.Ctx, n.cfg.Try
		n.work.Wait.Go(func() {
			err := try(ctx)
			n.work.Post(func() { n.tried(err) })
		})
	}
}

// tried acts on the result of the trial. If it succeeded, the node still waits for the
// children that have not reported yet, because their hand-over may be on its way.
func (n *node) tried(err error) {
	n.upgrades = steady
	switch {
	case n.stage != running:
		n.log.Info("not upgraded", "why", "the master is "+n.stage.String())
	case err != nil:
		n.refuseUpgrade(fmt.Errorf("the new binary cannot take over: %w", err))
	default:
		n.log.Info("upgrading", "path", n.cfg.Path)
		n.face.note(&n.face.notes.upgrade, "")
		n.upgrades = replacing
	}
}

func (n *node) refuseUpgrade(err error) {
	n.log.Error("not upgraded", "error", err)
	n.face.note(&n.face.notes.upgrade, "upgrade refused: "+wording.ErrorLine(err))
}

// replace puts the other binary in the place of this one. It returns only if that fails,
// and then the node works on as before.
func (n *node) replace() {
	n.upgrades = steady
	parcels := n.freeze()
	orders, err := n.exec(parcels)
	n.refuseUpgrade(err)

	n.work.Renew()
	for _, s := range n.slots {
		if s.child == nil {
			continue
		}
		if err := n.adopt(s, parcels[s]); err != nil {
			n.log.Error("child cannot be heard any more", "slot", s.name, "error", err)
			s.child, s.orphan = nil, &orphan{pid: s.child.proc.PID(), jobs: s.child.report.Jobs}
		}
	}
	n.resume()
	for _, o := range orders {
		o.run(n)
	}
}

// freeze ends all goroutines and loses nothing that they wait for: calls stay in their
// slots, and freeze returns the sockets of the children.
func (n *node) freeze() map[*slot]*parcel {
	n.work.Cancel()
	parcels := map[*slot]*parcel{}
	for _, s := range n.slots {
		if s.child == nil {
			continue
		}
		p, err := detach(s.child)
		if err != nil { // most likely the child is dead, and the event of its death is on its way
			n.log.Debug("child is not detached", "slot", s.name, "error", err)
			continue
		}
		parcels[s] = p
	}
	for idle := n.work.Idle(); ; {
		select {
		case f := <-n.work.Events:
			f()
		case <-idle:
			return sift(parcels)
		}
	}
}

// sift drops the parcels of children that died during the freeze.
func sift(parcels map[*slot]*parcel) map[*slot]*parcel {
	for s, p := range parcels {
		if s.child == nil {
			p.conn.Close()
			delete(parcels, s)
			continue
		}
		p.state.Report, p.state.Deadline = s.child.report, s.child.deadline
	}
	return parcels
}

// A parcel is a child on its way to the next binary.
type parcel struct {
	conn    *os.File
	drained bool
	looks   int
	state   childState
}

func detach(c *child) (*parcel, error) {
	conn, unread, err := c.proc.Detach()
	if err != nil {
		return nil, err
	}
	return &parcel{conn: conn, drained: c.drained, looks: c.looks, state: childState{
		PID: c.proc.PID(), Unread: unread, Started: c.started, Doom: c.doom, Version: c.version}}, nil
}

// exec hands the node over to the next binary. If that fails, it returns the orders that
// arrived in the meantime.
func (n *node) exec(parcels map[*slot]*parcel) ([]order, error) {
	files := make([]*os.File, keptConns)
	files[keptLock] = n.files.master.File()
	for _, p := range parcels {
		p.state.Conn = len(files)
		files = append(files, p.conn)
	}
	text, err := json.Marshal(n.pack(parcels))
	if err != nil {
		return nil, err
	}
	if files[keptState], err = proc.Memory(text); err != nil {
		return nil, err
	}
	defer files[keptState].Close()
	// Collected as late as possible, because the next binary knows nothing of these orders.
	orders := waiting(n.orders)
	if slices.ContainsFunc(orders, func(o order) bool { return o.ends }) {
		return orders, errors.New("the master was told to end meanwhile")
	}
	return orders, n.cfg.Exec(files)
}

// waiting returns the orders that no one has run yet.
func waiting(from <-chan order) []order {
	var orders []order
	for {
		select {
		case o := <-from:
			orders = append(orders, o)
		default:
			return orders
		}
	}
}

func (n *node) pack(parcels map[*slot]*parcel) state {
	st := state{
		Format: StateFormat, PID: n.face.pid,
		Started: n.face.started, Spawned: n.children.spawned,
	}
	for _, z := range n.zones {
		if z.Known {
			st.Known = append(st.Known, z.Name)
		}
	}
	for _, s := range n.slots.inUse() {
		switch p := parcels[s]; {
		case p != nil:
			st.Slots = append(st.Slots, slotState{Name: s.name, Zone: s.zone, Child: &p.state})
		case s.call != nil:
			st.Slots = append(st.Slots, slotState{Name: s.name, Zone: s.zone, Call: s.call})
		}
	}
	return st
}

// unpack restores the state that the previous binary has handed over.
func (n *node) unpack() error {
	files := n.cfg.Kept
	n.cfg.Kept = nil
	if len(files) == 0 {
		return nil
	}
	st, err := readState(files[keptState])
	if err != nil {
		return fmt.Errorf("state of the binary before: %w", err)
	}
	if st.PID != n.face.pid {
		return fmt.Errorf("state of the binary before: it is of pid %d, not of %d", st.PID, n.face.pid)
	}
	n.face.started, n.children.spawned = st.Started, st.Spawned
	for _, z := range n.zones {
		z.Known = slices.Contains(st.Known, z.Name)
	}
	for _, saved := range st.Slots {
		if err := n.unpackSlot(saved, files); err != nil {
			return fmt.Errorf("slot %s of the binary before: %w", saved.Name, err)
		}
	}
	return nil
}

func readState(f *os.File) (state, error) {
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return state{}, err
	}
	var st state
	if err := json.Unmarshal(text, &st); err != nil {
		return state{}, err
	}
	if st.Format != StateFormat {
		return state{}, fmt.Errorf("format %d, want %d: restart the master", st.Format, StateFormat)
	}
	return st, nil
}

func (n *node) unpackSlot(saved slotState, files []*os.File) error {
	s := &slot{name: saved.Name, zone: saved.Zone}
	n.slots[s.name] = s
	switch c := saved.Child; {
	case c == nil && saved.Call == nil:
		return errors.New("neither a child nor a call")
	case c == nil:
		s.call = saved.Call
		s.lock = n.files.relock(s)
		return nil
	case c.Conn < keptConns || c.Conn >= len(files):
		return fmt.Errorf("its child has file %d of %d", c.Conn, len(files))
	default:
		return n.adopt(s, &parcel{conn: files[c.Conn], drained: true, state: *c})
	}
}

// adopt makes the child in a parcel the child of a slot again.
func (n *node) adopt(s *slot, p *parcel) error {
	if p == nil {
		return errors.New("its socket was not kept")
	}
	adopted, err := n.children.machine.Adopt(p.state.PID, p.conn, p.state.Unread)
	if err != nil {
		return err
	}
	c := newChild(adopted, p.state.Started)
	c.ready, c.report, c.deadline, c.doom = true, p.state.Report, p.state.Deadline, p.state.Doom
	c.version, c.looks = cmp.Or(p.state.Version, "unknown"), p.looks
	c.told = n.children.machine.Boot()
	s.child = c
	if p.drained {
		c.drain()
	}
	return nil
}

package master

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs"
)

// slotFile is how the name of a slot's file begins.
const slotFile = "slot-"

// A slot is a place for one child. It is in node.slots from before something is
// taken for it until all that was taken is answered for. Of child, call and
// orphan exactly one is set.
type slot struct {
	name   string
	zone   string         // of an orphan maybe empty: not known
	lock   *proc.LockFile // nil while a child or an orphan has it
	child  *child
	call   *call
	orphan *orphan
}

// An orphan is a child of an earlier master. Nothing can be said to it; its lock
// tells when it is gone.
type orphan struct {
	pid  int
	jobs []jobs.ID
}

// free gives up the slot's lock.
func (s *slot) free() {
	if s.lock != nil {
		s.lock.Close()
		s.lock = nil
	}
}

func (n *node) slotPath(name string) string { return filepath.Join(n.cfg.Dir, slotFile+name) }

// freeSlot takes a slot that nobody uses; nil if there is none. A lock that
// somebody has is an orphan's.
func (n *node) freeSlot(zone string) (*slot, error) {
	for i := 1; len(n.slots) < n.cfg.Children; i++ {
		name := strconv.Itoa(i)
		if n.slots[name] != nil {
			continue
		}
		s, err := n.lockSlot(name)
		if err != nil {
			return nil, err
		}
		n.slots[name] = s
		if s.orphan != nil {
			n.watch(s)
			continue
		}
		s.zone = zone
		return s, nil
	}
	return nil, nil
}

// lockSlot returns a slot with its lock, or with the orphan that has it.
func (n *node) lockSlot(name string) (*slot, error) {
	lock, err := proc.Lock(n.slotPath(name))
	if err == nil {
		return &slot{name: name, lock: lock}, nil
	}
	var locked *proc.LockedError
	if !errors.As(err, &locked) {
		return nil, fmt.Errorf("slot %s: %w", name, err)
	}
	holder := locked.Holder
	n.log.Info("orphan found", "slot", name, "pid", holder.PID, "zone", signedZone(holder))
	return &slot{name: name, zone: signedZone(holder), orphan: &orphan{pid: holder.PID}}, nil
}

// relock takes the lock of a slot whose child is gone. It returns nil if somebody
// else is quicker, who then is found at the next use.
func (n *node) relock(s *slot) *proc.LockFile {
	lock, err := proc.Lock(n.slotPath(s.name))
	if err != nil {
		n.log.Warn("slot is not locked", "slot", s.name, "error", err)
		return nil
	}
	return lock
}

// release gives a slot back that has nothing more to do or to say.
func (n *node) release(s *slot) {
	if s.lock != nil {
		n.sign(s, n.face.pid, s.zone) // no take is under way any more
	}
	s.free()
	delete(n.slots, s.name) // nothing is shown of a slot without a child
}

// takeMark stands in a slot's file between the zone and the request of a take
// that is under way.
const takeMark = " take "

// sign writes into the slot's file whose it is. On a full disk the work goes on
// without: a master that comes after this one knows less then, and tells jobs to be
// lost that it would have given back.
func (n *node) sign(s *slot, pid int, text string) {
	err := s.lock.Sign(proc.Holder{PID: pid, Text: text})
	was := n.face.failing[slotFile+s.name]
	n.face.failing[slotFile+s.name] = err != nil
	switch {
	case err != nil && !was:
		n.log.Warn("slot is not signed", "slot", s.name, "error", err)
		n.note(&n.face.notes.dir, "node.dir cannot be written: "+wording.ErrorLine(err))
	case err == nil && was:
		n.note(&n.face.notes.dir, "")
	}
}

func signedZone(h proc.Holder) string {
	zone, _, _ := strings.Cut(h.Text, " ")
	return zone
}

// signedTake is the request of a take which was under way when its master died;
// empty if there is none.
func signedTake(h proc.Holder) string {
	_, request, _ := strings.Cut(h.Text, takeMark)
	return request
}

// findOrphans looks at the locks of all slots that the node ever had: those that
// somebody holds belong to children of an earlier master. Others may tell of a
// take for which there never was a child.
func (n *node) findOrphans() error {
	files, err := os.ReadDir(n.cfg.Dir)
	if err != nil {
		return fmt.Errorf("node.dir: %w", err)
	}
	for _, f := range files {
		name, isSlot := strings.CutPrefix(f.Name(), slotFile)
		if !isSlot || !isSlotName(name) || n.slots[name] != nil {
			continue
		}
		s, err := n.lockSlot(name)
		if err != nil {
			return err
		}
		if s.orphan == nil && !n.undo(s) {
			s.free()
			continue
		}
		n.slots[name] = s
	}
	return nil
}

func isSlotName(s string) bool {
	i, err := strconv.Atoi(s)
	return err == nil && i > 0 && strconv.Itoa(i) == s
}

// undo prepares to give back what an earlier master took for the slot and gave to
// nobody. It returns false if there is nothing.
func (n *node) undo(s *slot) bool {
	holder := s.lock.Holder()
	request := signedTake(holder)
	if request == "" {
		return false
	}
	s.zone = signedZone(holder)
	step := n.step(s, n.cfg.Slots)
	step.Request = request
	s.call = &call{Kind: callUndo, Step: step}
	return true
}

// vanished is the reason of a loss that nobody has seen.
const vanished = "vanished while no master ran"

// watch waits for the end of an orphan.
func (n *node) watch(s *slot) {
	ctx := n.work.ctx
	path := n.slotPath(s.name)
	n.work.wg.Go(func() {
		lock, err := proc.WaitFree(ctx, path)
		if ctx.Err() != nil {
			if err == nil {
				lock.Close()
			}
			return
		}
		n.work.post(func() { n.orphanGone(s, lock, err) })
	})
}

func (n *node) orphanGone(s *slot, lock *proc.LockFile, err error) {
	if err != nil {
		// Whether the lock is free cannot be told: the slot stays in use.
		n.log.Error("slot cannot be used", "slot", s.name, "error", err)
		return
	}
	n.log.Info("orphan ended", "slot", s.name, "pid", s.orphan.pid, "jobs", s.orphan.jobs)
	s.orphan, s.lock = nil, lock
	n.face.changed = true
	n.lose(s, "vanished after its master")
}

// inUse is the slots in use, in the order of their numbers.
func (n *node) inUse() []*slot {
	var all []*slot
	for _, s := range n.slots {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *slot) int {
		x, _ := strconv.Atoi(a.name)
		y, _ := strconv.Atoi(b.name)
		return x - y
	})
	return all
}

package master

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"

	"muster/internal/proc"
	"muster/internal/wording"
	"muster/jobs"
	"muster/master/owners"
)

// slotFile begins the name of a slot's file.
const slotFile = "slot-"

// A slot is a place for one child. It is in node.slots from before its take until Redis has
// an answer for each job of the take. Exactly one of child, call and orphan is set.
type slot struct {
	name   string
	zone   string         // may be empty for an orphan, whose zone is not known
	lock   *proc.LockFile // nil while a child or an orphan has it
	child  *child
	call   *call
	orphan *orphan
}

// An orphan is a child of an earlier master. The master cannot talk to it; the orphan's
// lock becomes free when it ends.
type orphan struct {
	pid  int
	jobs []jobs.ID
}

// free releases the slot's lock.
func (s *slot) free() {
	if s.lock != nil {
		s.lock.Close()
		s.lock = nil
	}
}

// lockFiles are the files of a node whose locks say whether its master runs, and which slots are
// in use.
type lockFiles struct {
	dir    string
	take   func(path string) (*proc.LockFile, error)
	master *proc.LockFile
	log    hclog.Logger
	face   *face
}

func (f lockFiles) path(name string) string { return filepath.Join(f.dir, slotFile+name) }

// freeSlot returns an unused slot and locks it, or nil if there is none. A locked slot
// belongs to an orphan.
func (n *node) freeSlot(zone string) (*slot, error) {
	for i := 1; len(n.slots) < n.slots.limit(n); i++ {
		name := strconv.Itoa(i)
		if n.slots[name] != nil {
			continue
		}
		s, err := n.files.lock(name)
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

// lock returns a slot with its lock, or with the orphan that holds the lock.
func (f lockFiles) lock(name string) (*slot, error) {
	lock, err := f.take(f.path(name))
	if err == nil {
		return &slot{name: name, lock: lock}, nil
	}
	var locked *proc.LockedError
	if !errors.As(err, &locked) {
		return nil, fmt.Errorf("slot %s: %w", name, err)
	}
	holder := locked.Holder
	f.log.Info("orphan found", "slot", name, "pid", holder.PID, "zone", owners.Zone(holder))
	return &slot{name: name, zone: owners.Zone(holder), orphan: &orphan{pid: holder.PID}}, nil
}

// relock takes the lock of a slot whose child is gone. It returns nil if another process
// was quicker; the next use of the slot finds that process.
func (f lockFiles) relock(s *slot) *proc.LockFile {
	lock, err := f.take(f.path(s.name))
	if err != nil {
		f.log.Warn("slot is not locked", "slot", s.name, "error", err)
		return nil
	}
	return lock
}

// release frees a slot that has no more work and no more call.
func (n *node) release(s *slot) {
	if s.lock != nil {
		n.files.sign(s, n.face.pid, s.zone) // removes the mark of the take
	}
	s.free()
	delete(n.slots, s.name) // the hub shows only slots with a child, so nothing changes there
}

// sign writes the owner of the slot into its file. On a full disk the master works on
// unsigned: the next master then knows less, and reports jobs as lost that it could have
// returned untouched.
func (f lockFiles) sign(s *slot, pid int, text string) {
	err := s.lock.Sign(proc.Holder{PID: pid, Text: text})
	was := f.face.failing[slotFile+s.name]
	f.face.failing[slotFile+s.name] = err != nil
	switch {
	case err != nil && !was:
		f.log.Warn("slot is not signed", "slot", s.name, "error", err)
		f.face.note(&f.face.notes.dir, "node.dir cannot be written: "+wording.ErrorLine(err))
	case err == nil && was:
		f.face.note(&f.face.notes.dir, "")
	}
}

// findOrphans checks the locks of all slots that the node ever had. A held lock belongs to
// a child of an earlier master. The file of a free one may hold the mark of a take for
// which no child was started.
func (n *node) findOrphans() error {
	files, err := os.ReadDir(n.cfg.Dir)
	if err != nil {
		return fmt.Errorf("node.dir: %w", err)
	}
	for _, f := range files {
		name, isSlot := strings.CutPrefix(f.Name(), slotFile)
		if !isSlot || !owners.IsSlot(name) || n.slots[name] != nil {
			continue
		}
		s, err := n.files.lock(name)
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

// undo prepares the return of jobs that an earlier master took for the slot and handed to
// no child. It returns false if there are none.
func (n *node) undo(s *slot) bool {
	holder := s.lock.Holder()
	request := owners.Take(holder)
	if request == "" {
		return false
	}
	s.zone = owners.Zone(holder)
	step := n.step(s, n.cfg.Slots)
	step.Request = request
	s.call = &call{Kind: callUndo, Step: step}
	return true
}

// vanished is the reason of a loss that no master has seen.
const vanished = "vanished while no master ran"

// watch waits in a goroutine for the end of an orphan.
func (n *node) watch(s *slot) {
	ctx := n.work.Ctx
	path := n.files.path(s.name)
	n.work.Wait.Go(func() {
		lock, err := proc.Await(ctx, func() (*proc.LockFile, error) { return n.files.take(path) })
		if ctx.Err() != nil {
			if err == nil {
				lock.Close()
			}
			return
		}
		n.work.Post(func() { n.orphanGone(s, lock, err) })
	})
}

func (n *node) orphanGone(s *slot, lock *proc.LockFile, err error) {
	if err != nil {
		// It is not known whether the lock is free: the slot stays in use.
		n.log.Error("slot cannot be used", "slot", s.name, "error", err)
		return
	}
	n.log.Info("orphan ended", "slot", s.name, "pid", s.orphan.pid, "jobs", s.orphan.jobs)
	s.orphan, s.lock = nil, lock
	n.face.changed = true
	n.lose(s, "vanished after its master")
}

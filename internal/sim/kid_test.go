package sim

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"muster/internal/proc"
	"muster/jobs"
	real "muster/master"
)

// A kid is a child as its master sees it. Its methods run in goroutines of the master.
type kid struct {
	m *master
	c *child
}

var errPipe = errors.New("broken pipe")

// startChild starts a process with the lock of its slot. It waits for the hand-over.
func (m *master) startChild(s proc.Spec) (real.Process, error) {
	file := s.Files[0]
	fd, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	lock := os.NewFile(uintptr(fd), file.Name())
	slot := strings.TrimPrefix(filepath.Base(file.Name()), "slot-")
	started, alive := m.tries("starts "+slot, func(v *visit) {
		m.faults.masterPoint(m.at, masterBeforeChild)
		m.after(m.between(time.Millisecond, 20*time.Millisecond), func() {
			c := newChild(m, slot, lock)
			m.at.children[slot] = c
			m.answer(v, kid{m, c})
		})
	})
	if !alive {
		lock.Close()
		return nil, os.ErrProcessDone
	}
	return started.(kid), nil
}

// PID returns the number of the process.
func (k kid) PID() int { return 1 }

// Line returns the connection with it.
func (k kid) Line() real.Line { return k }

// Send brings a message to the child.
func (k kid) Send(message any) error {
	with, alive := k.m.tries("sends "+k.c.slot, func(v *visit) {
		if k.c.dead {
			if message == any(jobs.OrderLook) {
				k.m.faults.met("an idle child is gone when it is woken")
			}
			k.m.answer(v, errPipe)
			return
		}
		k.c.then(func() {
			switch message := message.(type) {
			case *jobs.Handover:
				k.c.start(*message)
			case jobs.Order:
				if message == jobs.OrderLook {
					k.m.faults.met("an idle child is woken")
				}
				k.c.orders <- message
				k.c.woken = true
			}
		})
		k.m.answer(v, nil)
	})
	if !alive {
		return errPipe
	}
	err, _ := with.(error)
	return err
}

// Receive waits for a report, or for the end of the child.
func (k kid) Receive(into any) error {
	with, _ := k.m.tries("hears "+k.c.slot, func(v *visit) {
		k.c.hears = v
		k.c.listen()
	})
	switch got := with.(type) {
	case jobs.Report:
		*into.(*jobs.Report) = got
		return nil
	case error:
		return got
	}
	return proc.ErrDetached
}

// Wait waits for the end of the child.
func (k kid) Wait() (proc.Exit, error) {
	exit, alive := k.m.tries("waits "+k.c.slot, func(v *visit) {
		if k.c.waits = v; k.c.dead {
			k.m.answer(v, k.c.exit)
		}
	})
	if !alive {
		return proc.Exit{}, proc.ErrDetached
	}
	return exit.(proc.Exit), nil
}

// Kill is SIGKILL.
func (k kid) Kill() error {
	k.m.tries("kills "+k.c.slot, func(v *visit) {
		k.c.die("killed by its master")
		k.m.answer(v, nil)
	})
	return nil
}

// Terminate is SIGTERM, which no master here has a reason for.
func (k kid) Terminate() error { return nil }

// Detach is for an upgrade, which no master here has.
func (k kid) Detach() (*os.File, []byte, error) { return nil, nil, proc.ErrDetached }

// Expire ends the reading from a child that is dead: that has ended already.
func (k kid) Expire() {}

// Close ends the connection.
func (k kid) Close() error { return nil }

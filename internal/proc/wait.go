package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// deathPoll is the time between two checks for a death on a system without pidfd.
const deathPoll = 20 * time.Millisecond

// Exit describes how a child ended.
type Exit struct {
	Code   int            // if it ended by itself
	Signal syscall.Signal // if it was killed
	OOM    bool           // the kernel killed it because memory ran out
	Gone   bool           // it was no child of this process, so nobody knows
}

// String is for people, and for the reason of a lost job.
func (e Exit) String() string {
	switch {
	case e.Gone:
		return "vanished"
	case e.OOM:
		return "out of memory"
	case e.Signal != 0:
		return fmt.Sprintf("killed by signal %d", int(e.Signal))
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// Wait waits for the child's death and reaps it. It returns ErrDetached if the
// child was detached before.
func (c *Child) Wait() (Exit, error) {
	c.await()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pidfd != nil {
		c.pidfd.Close()
	}
	if c.detached {
		return Exit{}, ErrDetached
	}
	c.over = true
	return c.reap(), nil
}

// await returns when the child is dead, and does not reap it, or detached.
func (c *Child) await() {
	if c.awaitPidfd() {
		return
	}
	tick := time.NewTicker(deathPoll)
	defer tick.Stop()
	for !isDead(c.PID) {
		select {
		case <-c.quit:
			return
		case <-tick.C:
		}
	}
}

// awaitPidfd does the same with Go's poller, which needs no thread and no timer.
// It returns false if the system cannot do it.
func (c *Child) awaitPidfd() bool {
	if c.pidfd == nil {
		return false
	}
	raw, err := c.pidfd.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Read(func(uintptr) bool { return isDead(c.PID) })
	return err == nil || errors.Is(err, os.ErrDeadlineExceeded)
}

// wake lets awaitPidfd return, now or as soon as it is called.
func (c *Child) wake() {
	if c.pidfd != nil {
		c.pidfd.SetReadDeadline(time.Unix(1, 0))
	}
}

// isDead reports whether the child has ended, and leaves it to be reaped.
func isDead(pid int) bool {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}

// reap takes the dead child from the kernel. The caller holds mu.
func (c *Child) reap() Exit {
	var ws unix.WaitStatus
	for {
		pid, err := unix.Wait4(c.PID, &ws, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid != c.PID:
			return Exit{Gone: true}
		case ws.Signaled():
			oom := ws.Signal() == unix.SIGKILL && !c.killed && c.parent.oom.claim()
			return Exit{Signal: ws.Signal(), OOM: oom}
		default:
			return Exit{Code: ws.ExitStatus()}
		}
	}
}

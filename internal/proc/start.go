package proc

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// The file descriptors of a child.
const (
	connFD  = 3 // its end of the socketpair
	filesFD = 4 // the first of Spec.Files
)

// Self is the binary of this process, also where its path leads to another file
// by now: children must be of the same version as their parent.
const Self = "/proc/self/exe"

// A Spec says what a child is.
type Spec struct {
	Path   string     // of the binary; Self is this one
	Name   string     // by which it is called; empty: Path
	Args   []string   // after its name
	Env    []string   // all of it; nothing is inherited
	Files  []*os.File // file descriptors 4 and on; the caller keeps its own copies
	Stderr *os.File   // standard output and error; nil: the own standard error
}

// A Parent starts children and takes over those of the binary before.
type Parent struct {
	oom *oomCounter
}

// NewParent returns a Parent without children.
func NewParent() *Parent { return &Parent{oom: newOOMCounter("/")} }

// Start starts a child in a process group of its own, so that the terminal's
// signals reach only the parent. It has no parent death signal: a child outlives
// its parent, and an exec in place would kill them all.
func (p *Parent) Start(s Spec) (*Child, error) {
	c, err := p.start(s)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Path, err)
	}
	return c, nil
}

func (p *Parent) start(s Spec) (*Child, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()

	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "child's end")
	defer theirs.Close()
	conn, err := newConn(os.NewFile(uintptr(pair[0]), "parent's end"), nil)
	if err != nil {
		return nil, err
	}

	stderr := s.Stderr
	if stderr == nil {
		stderr = os.Stderr
	}
	files := []uintptr{null.Fd(), stderr.Fd(), stderr.Fd(), theirs.Fd()}
	for _, f := range s.Files {
		files = append(files, f.Fd())
	}
	p.oom.refresh()
	pidfd := -1
	name := cmp.Or(s.Name, s.Path)
	pid, err := syscall.ForkExec(s.Path, append([]string{name}, s.Args...), &syscall.ProcAttr{
		Env:   s.Env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true, PidFD: &pidfd},
	})
	if err != nil {
		conn.Close()
		return nil, err
	}
	return newChild(p, pid, pidfd, conn), nil
}

// Adopt takes over a child that the binary before this one has detached. The pid
// must be that of a child of this process. Adopt closes conn.
func (p *Parent) Adopt(pid int, conn *os.File, unread []byte) (*Child, error) {
	c, err := newConn(conn, unread)
	if err != nil {
		return nil, fmt.Errorf("adopt pid %d: %w", pid, err)
	}
	// A child cannot be anybody else's pid before it was reaped.
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		pidfd = -1
	}
	return newChild(p, pid, pidfd, c), nil
}

// A Child is a process that was started here. Wait must be called, once.
type Child struct {
	PID  int
	Conn *Conn

	parent *Parent
	pidfd  *os.File      // nil where the system has none
	quit   chan struct{} // closed by Detach, for a Wait without pidfd

	mu       sync.Mutex
	over     bool // reaped or detached: the pid is not ours any more; guarded by mu
	detached bool // guarded by mu
	killed   bool // by us, with SIGKILL; guarded by mu
}

func newChild(p *Parent, pid, pidfd int, conn *Conn) *Child {
	c := &Child{PID: pid, Conn: conn, parent: p, quit: make(chan struct{})}
	// Only a file that does not block is watched by Go's poller.
	if pidfd >= 0 && unix.SetNonblock(pidfd, true) == nil {
		c.pidfd = os.NewFile(uintptr(pidfd), "pidfd")
	} else if pidfd >= 0 {
		unix.Close(pidfd)
	}
	return c
}

// Kill ends the child at once.
func (c *Child) Kill() error { return c.signal(unix.SIGKILL) }

// Terminate asks the child to end.
func (c *Child) Terminate() error { return c.signal(unix.SIGTERM) }

// signal does nothing once the child was reaped: its pid may be another's.
func (c *Child) signal(s syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	if err := unix.Kill(c.PID, s); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal %d to pid %d: %w", s, c.PID, err)
	}
	c.killed = c.killed || s == unix.SIGKILL
	return nil
}

// Detach ends the use of the child in this process, for an exec in place: Wait
// returns ErrDetached, and a death from now on is left to Adopt. It returns the
// socket to the child and what was read from it but not received.
func (c *Child) Detach() (conn *os.File, unread []byte, err error) {
	c.mu.Lock()
	if !c.over {
		c.over, c.detached = true, true
		close(c.quit)
		c.wake()
	}
	c.mu.Unlock()
	if conn, unread, err = c.Conn.detach(); err != nil {
		return nil, nil, fmt.Errorf("detach pid %d: %w", c.PID, err)
	}
	return conn, unread, nil
}

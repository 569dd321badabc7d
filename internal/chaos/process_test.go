package chaos

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A process is a role that somebody starts again whenever it ends, as systemd does.
type process struct {
	name string
	args []string
	dir  string // it and its children stand in it, which tells them from others
	log  *os.File

	mu      sync.Mutex
	cmd     *exec.Cmd
	ends    bool          // it is not started again
	away    time.Duration // how long it stays away the next time
	stopped chan struct{}
}

// again is the pause before an ended process is started again.
const again = 500 * time.Millisecond

// run starts a process and keeps it running until stop.
func run(p *process) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(p.dir, p.name+".log"))
	if err != nil {
		return err
	}
	p.log, p.stopped = log, make(chan struct{})
	go func() {
		defer close(p.stopped)
		defer log.Close()
		for p.start() {
			p.cmd.Wait()
			p.mu.Lock()
			away := p.away
			p.away = again
			p.mu.Unlock()
			<-time.After(away)
		}
	}()
	return nil
}

// start is false if the process is not to run any more.
func (p *process) start() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends {
		return false
	}
	p.away = again
	p.cmd = exec.Command(p.args[0], p.args[1:]...)
	p.cmd.Dir, p.cmd.Stderr, p.cmd.Stdout = p.dir, p.log, p.log
	return p.cmd.Start() == nil
}

// signal sends a signal. After one that ends it, it stays away for so long.
func (p *process) signal(s syscall.Signal, away time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	p.away = max(again, away)
	p.cmd.Process.Signal(s) // of one that has ended already it does nothing
}

// stop ends a process in order, or else at once.
func (p *process) stop() (inOrder bool) {
	p.mu.Lock()
	p.ends, p.away = true, 0
	cmd := p.cmd
	p.mu.Unlock()
	if cmd == nil {
		return true
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.stopped:
		return true
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		<-p.stopped
		return false
	}
}

// pids are the processes that stand in a folder: a master and its children, also
// those that an earlier master has left.
func pids(dir string) (master, children []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, proc := range all {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil {
			continue
		}
		cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
		if err != nil || cwd != dir {
			continue // it ended meanwhile, or is somebody else's
		}
		text, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil {
			continue
		}
		words := strings.Split(string(bytes.TrimRight(text, "\x00")), "\x00")
		switch {
		case len(words) > 1 && words[1] == "worker":
			children = append(children, pid)
		case len(words) > 1 && words[1] == "master":
			master = append(master, pid)
		}
	}
	return master, children
}

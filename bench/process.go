package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is one that this program has started, with its log in a file.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   io.Reader
	log   string
	ended chan struct{} // closed when it is gone
	err   error         // how it ended; read after ended is closed
}

// apart keeps the signals of the terminal from a process: who started it ends it.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// start starts a process. Its environment is as good as empty, so that nobody's
// settings change what is measured.
func (b *bench) start(name, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), log: filepath.Join(b.dir, name+".log"),
		ended: make(chan struct{})}
	p.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir}
	p.cmd.SysProcAttr = apart()
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stderr = log
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p.out, p.cmd.Stdout = r, w
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	go func() {
		p.err = p.cmd.Wait()
		r.Close()
		close(p.ended)
	}()
	return p, nil
}

// stop asks a process to end, and ends it if it does not.
func (p *process) stop() error {
	p.stdin.Close()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
	if p.err != nil {
		return p.explain(p.err)
	}
	return nil
}

// explain adds the end of the log to an error.
func (p *process) explain(err error) error {
	text, _ := os.ReadFile(p.log)
	return fmt.Errorf("%s: %w: %s", filepath.Base(p.cmd.Path), err, lastLines(text, 5))
}

// gone is an error if the process has ended.
func (p *process) gone() error {
	select {
	case <-p.ended:
		return p.explain(fmt.Errorf("ended: %w", p.err))
	default:
		return nil
	}
}

// until asks again and again until something is so.
func (p *process) until(ctx context.Context, every time.Duration, so func() (bool, error)) error {
	const patience = 5 * time.Minute
	for began := time.Now(); time.Since(began) < patience; time.Sleep(every) {
		ok, err := so()
		if ok || err != nil {
			return err
		}
		if err := errors.Join(ctx.Err(), p.gone()); err != nil {
			return err
		}
	}
	return p.explain(fmt.Errorf("waited for %s", patience))
}

// children lists the child processes of a process.
func (p *process) children() ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	own := strconv.Itoa(p.cmd.Process.Pid)
	var pids []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid …; the name may hold anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 2 || fields[1] != own || fields[0] == "Z" {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}

// privateMemory is what belongs to a process alone, in bytes.
func privateMemory(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	sum := 0.0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && strings.HasPrefix(fields[0], "Private_") {
			kilo, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return 0, fmt.Errorf("smaps_rollup of %d: %q", pid, line)
			}
			sum += kilo * 1024
		}
	}
	return sum, nil
}

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/jobs/queue/keys"
)

// process is a role that was started.
type process struct {
	t    testing.TB
	name string
	cmd  *exec.Cmd
	log  *watched
	done chan struct{}
}

func (h *house) start(args ...string) *process {
	h.t.Helper()
	return h.startTo(nil, args...)
}

// startTo starts a role whose log goes to a file, if there is one.
func (h *house) startTo(log *os.File, args ...string) *process {
	h.t.Helper()
	p := &process{t: h.t, name: args[0], log: newWatched(), done: make(chan struct{})}
	p.cmd = exec.Command(h.bin, args...)
	p.cmd.Env = append(os.Environ(), h.env...)
	if h.env == nil {
		p.cmd.Env = append(p.cmd.Env, h.login(p.name)...)
	}
	p.cmd.Stderr = p.log
	if log != nil {
		p.cmd.Stderr = log
	}
	p.cmd.Dir = h.dir
	if err := p.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		p.cmd.Wait()
		close(p.done)
	}()
	h.t.Cleanup(func() {
		p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(time.Minute):
			h.t.Errorf("%s does not end; it says:\n%s", p.name, p.log)
			p.cmd.Process.Kill()
			<-p.done
		}
		if h.t.Failed() {
			h.t.Logf("%s said:\n%s", p.name, p.log)
		}
	})
	return p
}

// login returns the environment that logs a role in at Redis.
func (h *house) login(name string) []string {
	role := keys.RoleServer
	if name == "master" {
		role = keys.RoleNode
	}
	login := h.redis.As(role).Login
	if role == keys.RoleNode {
		login.Username = keys.NodeUser(h.zone)
	}
	return []string{"MUSTER_REDIS_USERNAME=" + login.Username, "MUSTER_REDIS_PASSWORD=" + login.Password}
}

// await waits until the log of the process contains these words.
func (p *process) await(words string) {
	p.t.Helper()
	p.awaitTimes(words, 1)
}

// awaitTimes waits until the log contains the words n times.
func (p *process) awaitTimes(words string, n int) {
	p.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		if strings.Count(p.log.String(), words) >= n {
			return
		}
		select {
		case <-p.log.news:
		case <-p.done:
			p.t.Fatalf("%s ended before it said %q; it said:\n%s", p.name, words, p.log)
		case <-late:
			p.t.Fatalf("%s does not say %q; it says:\n%s", p.name, words, p.log)
		}
	}
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// end waits for the end of the process and returns its exit code.
func (p *process) end() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("%s does not end; it says:\n%s", p.name, p.log)
	}
	return p.cmd.ProcessState.ExitCode()
}

// children returns the processes whose parent is pid.
func children(pid int) []int {
	var out []int
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// The line is: pid (name) state ppid. The name may contain anything.
		_, rest, _ := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == strconv.Itoa(pid) {
			if n, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// watched stores the output of a process and signals news.
type watched struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func newWatched() *watched { return &watched{news: make(chan struct{}, 1)} }

// Write implements io.Writer.
func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	select {
	case w.news <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (w *watched) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

var _ io.Writer = (*watched)(nil)

package dnstest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// daemon is a name server that runs until the test ends or stop is called.
type daemon struct {
	cmd   *exec.Cmd
	said  *lines
	ended chan struct{}
}

// patience bounds the start of a server on a busy machine; an idle one takes tenths of a second.
const patience = 60 * time.Second

// launch starts a server and waits until a line that it says holds ready.
func launch(ready string, name string, args ...string) (*daemon, error) {
	d := &daemon{cmd: exec.Command(name, args...), said: &lines{}, ended: make(chan struct{})}
	// A test that is killed cleans nothing up.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	up := make(chan struct{})
	go func() {
		defer close(d.ended)
		d.said.read(bufio.NewScanner(stderr), ready, up)
		_ = d.cmd.Wait() // how it ended stands in what it said
	}()
	select {
	case <-up:
		return d, nil
	case <-d.ended:
		return nil, errors.New(d.said.String())
	case <-time.After(patience):
		d.stop()
		return nil, fmt.Errorf("it never said %q: %s", ready, d.said)
	}
}

// stop ends the server and waits for it. It may be called twice.
func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-d.ended:
	case <-time.After(patience):
		_ = d.cmd.Process.Kill() // the same
		<-d.ended
	}
}

// lines collects what a server says.
type lines struct {
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *lines) read(scanner *bufio.Scanner, ready string, up chan struct{}) {
	for scanner.Scan() {
		l.mu.Lock()
		fmt.Fprintln(&l.text, scanner.Text())
		l.mu.Unlock()
		if up != nil && strings.Contains(scanner.Text(), ready) {
			close(up)
			up = nil
		}
	}
}

// String returns all that was said.
func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// program finds a program that tools/install.sh brings. Where root could have
// installed it, a missing one fails the test.
func program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin"} {
		if _, bad := os.Stat(filepath.Join(dir, name)); err != nil && bad == nil {
			path, err = filepath.Join(dir, name), nil
		}
	}
	if err == nil {
		return path
	}
	if _, debian := os.Stat("/etc/debian_version"); debian == nil && os.Getuid() == 0 {
		t.Fatalf("there is no %s: tools/install.sh bind knot", name)
	}
	t.Skipf("there is no %s on this machine", name)
	return ""
}

// folder makes one with a short name: Knot's control socket lives in it, and the
// name of a socket has 107 bytes.
func folder(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "dns")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("what the test leaves behind: %v", err)
		}
	})
	return dir
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run starts a program to its end and gives what it said on both outputs.
func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// until calls try until it gives nil, for as long as patience lasts.
func until(t testing.TB, what string, try func() error) {
	t.Helper()
	late := time.After(patience)
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-late:
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

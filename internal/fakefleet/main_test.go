package fakefleet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"muster/fleet"
	"muster/testkit/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds the wait for events that must happen at once; only a failing test waits so long.
const soon = 20 * time.Second

// rig is a fleet, its entries so far, and a way to run commands on it.
type rig struct {
	*Fleet
	t     *testing.T
	hosts []fleet.Host

	mu   sync.Mutex
	told []Entry
	news chan struct{} // closed and replaced at each entry
}

func start(t *testing.T, c Config) *rig {
	t.Helper()
	r := &rig{t: t, news: make(chan struct{})}
	c.Watch = r.hear
	f, err := Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	r.Fleet, r.hosts = f, f.Hosts()
	return r
}

// all gives every host of a fleet the same personality.
func all(p Personality) func(int) Personality { return func(int) Personality { return p } }

func (r *rig) hear(e Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, e)
	close(r.news)
	r.news = make(chan struct{})
}

// await waits until the hosts have reported a matching entry.
func (r *rig) await(what string, is func(Entry) bool) Entry {
	r.t.Helper()
	late := time.After(soon)
	for {
		r.mu.Lock()
		i, news := slices.IndexFunc(r.told, is), r.news
		if i >= 0 {
			defer r.mu.Unlock()
			return r.told[i]
		}
		r.mu.Unlock()
		select {
		case <-news:
		case <-late:
			r.t.Fatalf("no command %s; log: %+v", what, r.Log())
		}
	}
}

func started(n int) func(Entry) bool {
	return func(e Entry) bool { return e.Number == n && e.Running() }
}

func orphaned(n int) func(Entry) bool {
	return func(e Entry) bool { return e.Number == n && e.Running() && e.Orphaned }
}

func ended(n int) func(Entry) bool {
	return func(e Entry) bool { return e.Number == n && !e.Running() }
}

func (r *rig) dial(host int) *ssh.Client {
	r.t.Helper()
	ctx, stop := context.WithTimeout(r.t.Context(), soon)
	defer stop()
	c, err := sshtest.Dial(ctx, r.hosts[host], r.Signer())
	if err != nil {
		r.t.Fatalf("dial %s: %v", r.hosts[host].Name, err)
	}
	late := time.AfterFunc(4*soon, func() { c.Close() }) // so that no test hangs
	r.t.Cleanup(func() { late.Stop(); c.Close() })
	return c
}

// answer is the result of a command as a client sees it.
type answer struct {
	out, err string
	code     int
	signal   string
	missing  bool // the client got no status
}

func (r *rig) exec(c *ssh.Client, command string, stdin io.Reader) answer {
	r.t.Helper()
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	defer s.Close()
	var out, stderr bytes.Buffer
	s.Stdin, s.Stdout, s.Stderr = stdin, &out, &stderr
	err = s.Run(command)
	a := answer{out: out.String(), err: stderr.String()}
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	switch {
	case err == nil:
	case errors.As(err, &missing):
		a.missing = true
	case errors.As(err, &exit) && exit.Signal() != "":
		a.signal = exit.Signal()
	case errors.As(err, &exit):
		a.code = exit.ExitStatus()
	default:
		r.t.Fatalf("run %q: %v", command, err)
	}
	return a
}

// launch starts a command and does not wait for it.
func (r *rig) launch(c *ssh.Client, command string) *ssh.Session {
	r.t.Helper()
	s, err := c.NewSession()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := s.Start(command); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// untilGo is a command that runs until the test wants it to end.
const untilGo = "while [ ! -e /tmp/go ]; do sleep 0.002; done"

// letGo ends untilGo without a command.
func (r *rig) letGo(host int) {
	r.t.Helper()
	if err := r.Touch("/tmp/go", r.Fleet.hosts[host].name); err != nil {
		r.t.Fatal(err)
	}
}

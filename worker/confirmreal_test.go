package worker

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/jobs"
	"muster/testkit/sshtest"
	"muster/worker/attempt"
)

// wall stands between a worker and a real sshd. It lets nobody through while a file of the host
// says so, and it can cut open connections.
type wall struct {
	rules string       // a file: "shut" lets nobody through
	after atomic.Int64 // cuts all connections once, after so many bytes from the worker; 0: never
	bytes atomic.Int64
	conns sync.WaitGroup
}

// raise puts a wall before an address, and returns the port of the wall.
func (w *wall) raise(t *testing.T, to string) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); w.conns.Wait() })
	w.conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.conns.Go(func() { w.pass(c, to) })
		}
	})
	return l.Addr().(*net.TCPAddr).Port
}

func (w *wall) shut() bool {
	b, _ := os.ReadFile(w.rules)
	return strings.HasPrefix(string(b), "shut")
}

func (w *wall) pass(c net.Conn, to string) {
	defer c.Close()
	if w.shut() {
		return
	}
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer s.Close()
	var both sync.WaitGroup
	both.Go(func() { w.carry(s, c, true) })
	both.Go(func() { w.carry(c, s, false) })
	both.Wait()
}

// carry passes bytes on, until the wall shuts or cuts.
func (w *wall) carry(to, from net.Conn, counts bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 512)
	for {
		n, err := from.Read(buf)
		if err != nil || w.shut() {
			return
		}
		if after := w.after.Load(); counts && after > 0 && w.bytes.Add(int64(n)) > after {
			w.after.Store(0)
			return
		}
		if _, err := to.Write(buf[:n]); err != nil && err != io.EOF {
			return
		}
	}
}

const walled = `
name: walled
arguments:
  rules: {type: string}
  want: {type: string}
disruptive: true
timeout: 10s
steps:
  - name: swap
    confirm:
      guard: cp {{rules}} "$MUSTER_DIR/old"
      apply: printf %s {{want}} > {{rules}}; echo applied
      prove: '[ "$(cat {{rules}})" = {{want}} ]'
      keep: cp {{rules}} {{rules}}.kept
      rollback: cp "$MUSTER_DIR/old" {{rules}}
      within: 10s
`

// realLife makes a job on a real sshd behind a wall, and the file of its rules.
func realLife(t *testing.T, sshd sshtest.SSHD, want string) (*life, *wall) {
	t.Helper()
	dir := t.TempDir()
	w := &wall{rules: filepath.Join(dir, "rules")}
	if err := os.WriteFile(w.rules, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := remote.Default()
	cfg.RecordDir = filepath.Join(dir, "record")
	// The host has kept records for long, so it can show that a step never began.
	if err := os.Mkdir(cfg.RecordDir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cfg.RecordDir+"/born", []byte("000000000 000000001 x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	s := &stand{t: t, q: newQueue(t), hosts: newHosts(), cfg: Default(), log: hclog.NewNullLogger(),
		bootClock: bootClock{zero: time.Now()}, times: &fakeTimes{}}
	s.cfg.RecordDir = cfg.RecordDir
	s.hosts.door = attempt.SSH(client)
	s.reads(walled, map[string]string{"rules": w.rules, "want": want})
	spec := s.q.specs[task1]
	spec.Created = jobs.MicrosOf(time.Now())
	s.q.specs[task1] = spec
	l := newLife(t, s)
	host := sshd.Host
	host.Address, host.Port = "127.0.0.1", w.raise(t, net.JoinHostPort(sshd.Address, strconv.Itoa(sshd.Port)))
	host.Fence = fleet.FenceAuto
	l.grant.Host = &host
	return l, w
}

func TestAChangeOnARealSSHD(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxStartups 200"}})
	for _, tt := range []struct {
		want    string
		outcome jobs.Outcome
		rules   string
	}{
		{"new", jobs.Succeeded, "new"},
		{"shut", jobs.RolledBack, "old"}, // nobody can log in any more, not even muster
	} {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			l, w := realLife(t, sshd, tt.want)
			r := l.live(60)
			rules, _ := os.ReadFile(w.rules)
			_, err := os.Stat(w.rules + ".kept")
			if r.Outcome != tt.outcome || string(rules) != tt.rules || (err == nil) != (r.Outcome == jobs.Succeeded) {
				t.Errorf("%s %s, rules %s, kept %v\n%s\n%s", r.Outcome, r.Error, rules, err,
					strings.Join(l.log, "\n"), l.said)
			}
		})
	}
}

// The wall cuts the connection at sixteen moments of a change. In each case the change is either
// confirmed or rolled back, and muster says which.
func TestAChangeSurvivesCutsAtAnyMoment(t *testing.T) {
	t.Parallel()
	sshd := sshtest.StartSSHD(t, sshtest.Options{Address: "127.0.0.3", Config: []string{"MaxStartups 200"}})
	for i := range 16 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			l, w := realLife(t, sshd, "new")
			w.after.Store(int64(600 + 1900*i))
			r := l.live(60)
			rules, _ := os.ReadFile(w.rules)
			confirmed, _ := filepath.Glob(filepath.Dir(w.rules) + "/record/confirm/*/confirmed")
			back, _ := filepath.Glob(filepath.Dir(w.rules) + "/record/confirm/*/rolledback")
			want := map[jobs.Outcome]string{jobs.Succeeded: "new", jobs.RolledBack: "old"}[r.Outcome]
			if want != string(rules) || len(confirmed) != map[string]int{"new": 1}[want] || len(confirmed)+len(back) != 1 {
				t.Errorf("%s %s, rules %s, confirmed %v, taken back %v\n%s\n%s", r.Outcome, r.Error, rules, confirmed,
					back, strings.Join(l.log, "\n"), l.said)
			}
			t.Logf("cut after %d bytes of %d: %s in %d attempts", 600+1900*i, w.bytes.Load(), r.Outcome, l.grant.Attempt)
		})
	}
}

package master

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/jobs"
)

// process is a master in a process of its own, with its world.
type process struct {
	*world
	spec masterSpec
	file string
	cmd  *exec.Cmd
	end  chan error
}

// newProcess prepares a world for masters that come one after the other.
func newProcess(t *testing.T) *process {
	t.Helper()
	p := &process{world: newWorld(t)}
	p.spec = masterSpec{Address: p.serve(t), Dir: t.TempDir(), Children: 2, Version: "1"}
	p.file = filepath.Join(t.TempDir(), "spec")
	return p
}

// tell writes the file that a master reads at its start and at SIGHUP.
func (p *process) tell(t *testing.T, set func(*masterSpec)) {
	t.Helper()
	if set != nil {
		set(&p.spec)
	}
	text, err := json.Marshal(p.spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run starts a master.
func (p *process) run(t *testing.T) {
	t.Helper()
	p.tell(t, nil)
	p.cmd = exec.Command(os.Args[0], asMaster, p.file)
	p.cmd.Env = append(os.Environ(), childEnv...)
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd, end := p.cmd, make(chan error, 1)
	p.end = end
	go func() { end <- cmd.Wait() }()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-end
	})
	p.until(t, "the master shows itself", func() bool { return p.beat.PID == cmd.Process.Pid })
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// wait waits for the end of the process.
func (p *process) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.end:
		p.end <- err
		return err
	case <-time.After(patience):
		t.Fatal("the master does not end")
		return nil
	}
}

// kill is kill -9.
func (p *process) kill(t *testing.T) {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	p.wait(t)
}

func TestOrphansCount(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	ids := p.put("default", "hold-1", "hold-2", "ok-3")
	p.works(t, ids[:2]...)
	pids := []int{p.pidOf(t, ids[0]), p.pidOf(t, ids[1])}
	p.kill(t)
	takes := len(p.takes)

	p.run(t)
	p.until(t, "both orphans are shown with their jobs", func() bool {
		c := p.beat.Children
		return len(c) == 2 && c[0].Orphan && c[1].Orphan && slices.Contains(pids, c[0].PID) &&
			slices.Contains(pids, c[1].PID) && c[0].Job != "" && c[1].Job != ""
	})
	seen := 0
	p.until(t, "some time has passed", func() bool { seen++; return seen > 5 })
	p.mu.Lock()
	if len(p.takes) != takes {
		t.Errorf("%d takes while two orphans are at work and two are the limit", len(p.takes)-takes)
	}
	p.mu.Unlock()

	p.release(ids[0])
	p.ends(t, ids[0], ids[2])
	p.release(ids[1])
	p.ends(t, ids[1])
	p.until(t, "the orphans are gone", func() bool { return len(p.beat.Children) == 0 })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.most > 2 || len(p.lost) > 0 {
		t.Errorf("%d at a time, lost %v, want 2 at most and nothing lost", p.most, p.lost)
	}
}

func TestOrphansDeath(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]bool{"while no master ran": true, "after its master": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			p.run(t)
			id := p.put("default", "hold")[0]
			p.works(t, id)
			pid := p.pidOf(t, id)
			p.kill(t)
			if before {
				killPID(t, pid)
			}
			p.run(t)
			if !before {
				p.until(t, "the orphan is shown", func() bool {
					return len(p.beat.Children) == 1 && p.beat.Children[0].Orphan
				})
				killPID(t, pid)
			}
			p.until(t, "its job is lost", func() bool { return slices.Equal(p.lost, []jobs.ID{id}) })
			p.mu.Lock()
			defer p.mu.Unlock()
			if why := "vanished " + name; p.losses[0].Why != why && p.losses[0].Why != "vanished after its master" {
				t.Errorf("why %q, want %q", p.losses[0].Why, why)
			}
		})
	}
}

// killPID kills a process that is no child of the test.
func killPID(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// A master that dies between a take and the start of a child leaves jobs that
// nobody has touched.
func TestTakeOfAKilledMasterIsGivenBack(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	stalled := make(chan struct{})
	p.update(func() { p.stalled = stalled })
	id := p.put("default", "ok")[0]
	p.until(t, "the job was taken", func() bool { return len(p.due["default"]) == 0 })
	p.kill(t)
	p.update(func() { p.stalled = nil })
	close(stalled)

	p.run(t)
	p.ends(t, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !slices.Equal(p.backs, []jobs.ID{id}) || len(p.lost) > 0 {
		t.Errorf("given back %v, lost %v, want %s given back", p.backs, p.lost, id)
	}
}

// upgrade sends USR2 and waits for the new version.
func (p *process) upgrade(t *testing.T, version string) {
	t.Helper()
	p.tell(t, func(s *masterSpec) { s.Version = version })
	p.signal(t, syscall.SIGUSR2)
	p.until(t, "version "+version+" shows itself", func() bool { return p.beat.Version == version })
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beat.PID != p.cmd.Process.Pid {
		t.Errorf("pid %d after the upgrade, want %d", p.beat.PID, p.cmd.Process.Pid)
	}
}

func TestUpgradeKeepsTheChildren(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	ids := p.put("default", "hold-1", "hold-2", "hold-3", "exit-4")
	p.works(t, ids[:2]...)
	pids := []int{p.pidOf(t, ids[0]), p.pidOf(t, ids[1])}
	p.upgrade(t, "2")
	p.upgrade(t, "3")
	p.mu.Lock()
	for _, c := range p.beat.Children {
		if c.Orphan || !slices.Contains(pids, c.PID) {
			t.Errorf("child %+v, want one of %v and no orphan", c, pids)
		}
	}
	p.mu.Unlock()

	p.until(t, "both were told to drain", func() bool { return p.drains == 2 })
	p.release(ids[0])
	p.ends(t, ids[0])
	p.works(t, ids[2])
	if pid := p.pidOf(t, ids[2]); slices.Contains(pids, pid) {
		t.Errorf("the third job runs in pid %d, which the first binary has started", pid)
	}
	if err := syscall.Kill(pids[1], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until(t, "the new binary has seen the old child die", func() bool { return slices.Contains(p.lost, ids[1]) })
	p.until(t, "children are counted on", func() bool { return p.beat.Spawned >= 4 })
	p.until(t, "the last one is lost", func() bool { return slices.Contains(p.lost, ids[3]) })
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, why := range []string{"killed by signal 9", "exit 3"} {
		if !slices.ContainsFunc(p.losses, func(l jobs.Loss) bool { return l.Why == why }) {
			t.Errorf("no loss with the reason %q in %+v", why, p.losses)
		}
	}
	if p.most > 2 {
		t.Errorf("%d at a time, want 2", p.most)
	}
}

func TestUpgradesUnderLoad(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	var ids []jobs.ID
	for i := range 5 {
		ids = append(ids, p.put("default", hosts(fmt.Sprintf("ok-%d", i), 20)...)...)
		p.upgrade(t, fmt.Sprint("1.", i))
	}
	p.ends(t, ids...)
	p.signal(t, syscall.SIGTERM)
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lost)+len(p.backs) > 0 || !p.gone {
		t.Errorf("lost %v, given back %v, gone %v", p.lost, p.backs, p.gone)
	}
}

// Some of the signals meet a binary that does not listen yet.
func TestUpgradesWithoutAPause(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	ids := p.put("default", hosts("ok", 50)...)
	p.tell(t, func(s *masterSpec) { s.Version = "2" })
	// One signal a beat: a master that is replaced before each of its beats never shows itself.
	heard := -1
	p.until(t, "version 2 shows itself", func() bool {
		if p.beats > heard {
			heard = p.beats
			p.signal(t, syscall.SIGUSR2)
		}
		return p.beat.Version == "2"
	})
	p.ends(t, ids...)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lost)+len(p.backs) > 0 || p.most > 2 {
		t.Errorf("lost %v, given back %v, %d at a time", p.lost, p.backs, p.most)
	}
}

func TestUpgradeDoesNotForgetTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cfg := testConfig(os.Args[0], t.TempDir(), "")
	cfg.Exec = func([]*os.File) error {
		t.Error("upgraded, but the next binary does not know that it shall end")
		return nil
	}
	m, err := New(cfg, w, w, silent())
	if err != nil {
		t.Fatal(err)
	}
	m.Upgrade()
	m.Drain()
	if err := m.Run(t.Context()); err != nil || !w.gone {
		t.Errorf("run: %v, gone %v", err, w.gone)
	}
}

// The next binary repeats the call whose answer the previous one has not received.
func TestUpgradeDuringATake(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	stalled := make(chan struct{})
	p.update(func() { p.stalled = stalled })
	id := p.put("default", "ok")[0]
	p.until(t, "the job was taken", func() bool { return len(p.due["default"]) == 0 })
	p.upgrade(t, "2")
	p.update(func() { p.stalled = nil })
	close(stalled)
	p.ends(t, id)
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lost)+len(p.backs) > 0 {
		t.Errorf("lost %v, given back %v", p.lost, p.backs)
	}
}

func TestUpgradeFails(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func([]*os.File) error{
		"not possible here": nil,
		"no such binary":    func([]*os.File) error { return errors.New("no such binary") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, func(r *rig) { r.cfg.Exec = replace })
			ids := r.put("default", "hold-1", "hold-2")
			r.works(t, ids...)
			pid := r.pidOf(t, ids[0])
			r.m.Upgrade()
			r.until(t, "the node says so", func() bool { return strings.Contains(r.beat.Note, name) })
			if now := r.pidOf(t, ids[0]); now != pid {
				t.Errorf("job of pid %d is now of %d", pid, now)
			}
			r.release(ids...)
			r.ends(t, ids...)
			more := r.put("default", "ok-1", "exit-2")
			r.ends(t, more[0])
			r.until(t, "deaths are still seen", func() bool { return slices.Contains(r.lost, more[1]) })
		})
	}
}

func TestSignalsOfAProcess(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.run(t)
	if err := os.WriteFile(p.file, []byte("{not json"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.signal(t, syscall.SIGHUP)
	p.until(t, "the bad file is refused", func() bool {
		return strings.HasPrefix(p.beat.Note, "reload refused, the old configuration stays: invalid character")
	})
	ids := p.put("default", "hold-1", "hold-2", "hold-3")
	p.works(t, ids[:2]...)
	p.tell(t, func(s *masterSpec) { s.Children = 3 })
	p.signal(t, syscall.SIGHUP)
	p.works(t, ids...)
	p.until(t, "the note is gone", func() bool { return p.beat.Note == "" && p.beat.Limit == 3 })
	p.signal(t, syscall.SIGTERM)
	p.until(t, "it drains", func() bool { return p.beat.State == "draining" })
	p.signal(t, syscall.SIGTERM)
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.lost) != 3 || !p.gone {
		t.Errorf("lost %v, gone %v, want all three lost by the second TERM", p.lost, p.gone)
	}
}

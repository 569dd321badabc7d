package scripts_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
	"muster/internal/trial"
	"muster/scripts"
)

const changing = `
name: changing
arguments:
  within: {type: duration, default: 10s}
  probes: {type: string, default: ""}
  dir: {type: string}
disruptive: true
timeout: 1m
library: note() { printf '%s\n' "$*" >> {{dir}}/log; }
steps:
  - name: swap
    confirm:
      guard: note guard; cp {{dir}}/rules "$MUSTER_DIR/old"
      apply: note apply; cp {{dir}}/new {{dir}}/rules; ! grep -q broken {{dir}}/new
      prove: note prove; cat {{dir}}/proof; exit "$(cat {{dir}}/proof)"
      keep: note keep; cp {{dir}}/rules {{dir}}/kept
      rollback: note rollback; cp "$MUSTER_DIR/old" {{dir}}/rules
      within: "{{within}}"
      probes: probes
    classes: [{exit: 9, class: transient, say: nine}]
`

// bench is a host on which something is changed, and the texts for it.
type bench struct {
	t    *testing.T
	dir  string // of the rules
	book scripts.Frozen
	*scripts.Confirm
}

func change(t *testing.T, args map[string]string) *bench {
	t.Helper()
	c := &bench{t: t, dir: t.TempDir()}
	t.Cleanup(c.endTimers)
	for name, text := range map[string]string{"rules": "old", "new": "new", "proof": "0"} {
		c.write(name, text)
	}
	if args == nil {
		args = map[string]string{}
	}
	args["dir"] = c.dir
	c.book = frozen(t, changing, args)
	c.Confirm = c.as("0000000001")
	return c
}

// endTimers ends what waits for an hour to take changes back. Each is a session of its own.
func (c *bench) endTimers() {
	names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, name := range names {
		text, _ := os.ReadFile(name) // of one that has ended there is nothing
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err == nil && pid != os.Getpid() && strings.Contains(string(text), c.dir+"/") {
			_ = syscall.Kill(-pid, syscall.SIGKILL) // it may have ended meanwhile
		}
	}
}

func (c *bench) as(task string) *scripts.Confirm {
	c.t.Helper()
	a, err := c.book.Step(0, fleet.Host{Name: "fw1", Address: "192.0.2.7"}, scripts.Context{Task: task,
		RecordDir: filepath.Join(c.dir, "muster")})
	if err != nil {
		c.t.Fatal(err)
	}
	return a.Confirm()
}

func (c *bench) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func (c *bench) read(name string) string {
	b, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return "-"
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// sh runs a text as a host does and returns what it says of the change.
func (c *bench) sh(shell, text string) trial.State {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	words := append(strings.Fields(shell), "-c", text)
	out, err := exec.CommandContext(ctx, words[0], words[1:]...).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	state, ok := trial.Read(lines[len(lines)-1])
	if !ok {
		c.t.Errorf("%s: %v, said %q", shell, err, out)
	}
	return state
}

// becomes waits for a file to hold a text.
func (c *bench) becomes(name, want string) {
	c.t.Helper()
	deadline := time.After(30 * time.Second)
	for c.read(name) != want {
		select {
		case <-deadline:
			c.t.Fatalf("%s is %q, want %q; log %s", name, c.read(name), want, c.read("log"))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func TestAChangeThatIsConfirmedStays(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "busybox sh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			c := change(t, nil)
			if s := c.sh(shell, c.State); s.Word != trial.None {
				t.Errorf("before: %+v", s)
			}
			s := c.sh(shell, c.Arm)
			if s.Word != trial.Armed || s.Left < 5*time.Second || s.Left > 10*time.Second {
				t.Errorf("armed: %+v", s)
			}
			if s := c.sh(shell, c.Arm); s.Word != trial.Armed { // its answer was lost
				t.Errorf("armed again: %+v", s)
			}
			if s := c.sh(shell, c.Prove); s.Word != trial.Proof || s.Code != 0 {
				t.Errorf("proof: %+v", s)
			}
			for range 2 {
				if s := c.sh(shell, c.Confirm.Confirm); s.Word != trial.Confirmed || s.Code != 0 {
					t.Errorf("confirmed: %+v", s)
				}
			}
			if s := c.sh(shell, c.Back); s.Word != trial.Confirmed {
				t.Errorf("taken back when it was confirmed: %+v", s)
			}
			got, rules, kept := c.read("log"), c.read("rules"), c.read("kept")
			if got != "guard apply prove keep keep" || rules != "new" || kept != "new" {
				t.Errorf("log %s, rules %s, kept %s", got, rules, kept)
			}
		})
	}
}

func TestAChangeThatNobodyConfirmsIsTakenBack(t *testing.T) {
	t.Parallel()
	c := change(t, nil)
	c.sh("sh", c.Arm)
	if got := c.read("rules"); got != "new" {
		t.Errorf("rules %s", got)
	}
	c.becomes("rules", "old")
	if s := c.sh("sh", c.Confirm.Confirm); s.Word != trial.RolledBack || s.Code != 0 {
		t.Errorf("%+v", s)
	}
	if got := c.read("log"); got != "guard apply rollback" {
		t.Errorf("log %s", got)
	}
}

func TestAChangeThatFailsIsTakenBackAtOnce(t *testing.T) {
	t.Parallel()
	c := change(t, nil)
	c.write("new", "broken")
	s := c.sh("sh", c.Arm)
	if s.Word != trial.RolledBack || s.Code != 0 || s.More != "apply 1" || c.read("rules") != "old" {
		t.Errorf("%+v, rules %s", s, c.read("rules"))
	}
}

func TestAGuardThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	c := change(t, nil)
	if err := os.Remove(filepath.Join(c.dir, "rules")); err != nil {
		t.Fatal(err)
	}
	if s := c.sh("sh", c.Arm); s.Word != trial.None || s.Code != 1 {
		t.Errorf("%+v", s)
	}
	c.write("rules", "old")
	if s := c.sh("sh", c.Arm); s.Word != trial.Armed {
		t.Errorf("the next one: %+v", s)
	}
}

// Where the disk has no room for all that takes a change back, none is made: the rollback, or
// the line that arms it, would be empty. Of seven files each takes a page.
func TestAFullDiskArmsNothing(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"sh", "busybox sh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			c := change(t, nil)
			c.write("rules", "") // what the guard keeps of it needs no room
			place := filepath.Join(c.dir, "muster")
			if err := os.Mkdir(place, 0o700); err != nil {
				t.Fatal(err)
			}
			size := func(how string, pages int) error {
				o := fmt.Sprintf("%ssize=%d,mode=700", how, pages*os.Getpagesize())
				return exec.Command("mount", "-t", "tmpfs", "-o", o, "none", place).Run()
			}
			if err := size("", 1); err != nil {
				t.Skipf("nothing can be mounted here: %v", err)
			}
			t.Cleanup(func() { exec.Command("umount", "-l", place).Run() })
			for pages := 1; pages < 7; pages++ {
				if err := size("remount,", pages); err != nil {
					t.Fatal(err)
				}
				s := c.sh(shell, c.Arm)
				left, _ := filepath.Glob(filepath.Join(place, "confirm/*"))
				if s.Word != trial.None || s.Code != 1 || len(left) != 0 {
					t.Errorf("%d pages: %+v, left %v", pages, s, left)
				}
			}
			if log := c.read("log"); strings.Contains(log, "apply") || c.read("rules") != "" {
				t.Errorf("log %s, rules %s", log, c.read("rules"))
			}
			if err := size("remount,", 50); err != nil {
				t.Fatal(err)
			}
			if s := c.sh(shell, c.Arm); s.Word != trial.Armed || c.read("rules") != "new" {
				t.Errorf("with room: %+v, rules %s", s, c.read("rules"))
			}
			if s := c.sh(shell, c.Back); s.Word != trial.RolledBack || c.read("rules") != "" {
				t.Errorf("and back: %+v, rules %s", s, c.read("rules"))
			}
		})
	}
}

func TestARollbackThatFailsIsSaid(t *testing.T) {
	t.Parallel()
	c := change(t, nil)
	c.sh("sh", c.Arm)
	old, _ := filepath.Glob(filepath.Join(c.dir, "muster/confirm/*/old"))
	if len(old) != 1 || os.Remove(old[0]) != nil {
		t.Fatal(old)
	}
	if s := c.sh("sh", c.Back); s.Word != trial.RolledBack || s.Code != 1 {
		t.Errorf("%+v", s)
	}
}

// Nobody makes a change on top of one that may be taken away below it.
func TestOneChangeAtATime(t *testing.T) {
	t.Parallel()
	c := change(t, nil)
	c.sh("sh", c.Arm)
	other := c.as("0000000002")
	if s := c.sh("sh", other.Arm); s.Word != trial.Busy || s.More != "0000000001:fw1" || s.Left <= 0 {
		t.Errorf("%+v", s)
	}
	c.sh("sh", c.Back)
	if s := c.sh("sh", other.Arm); s.Word != trial.Armed {
		t.Errorf("%+v", s)
	}
	c.sh("sh", other.Back)
}

// Since another boot nothing takes it back any more; whoever asks does.
func TestARebootBeforeTheConfirmTakesItBack(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(c *bench) string{
		"asked": func(c *bench) string { return c.State },
		"next":  func(c *bench) string { return c.as("0000000002").Arm },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := change(t, map[string]string{"within": "1h"})
			c.sh("sh", c.Arm)
			armed, _ := filepath.Glob(filepath.Join(c.dir, "muster/confirm/*/armed"))
			if len(armed) != 1 || os.WriteFile(armed[0], []byte("another-boot 100 3600 j\n"), 0o600) != nil {
				t.Fatal(armed)
			}
			c.sh("sh", ask(c))
			if got := c.read("log"); !strings.HasPrefix(got, "guard apply rollback") {
				t.Errorf("log %s", got)
			}
			c.sh("sh", c.as("0000000002").Back)
		})
	}
}

// Of confirming and taking back exactly one comes about, and host and muster agree which.
func TestSixteenRaces(t *testing.T) {
	t.Parallel()
	for i := range 16 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := change(t, map[string]string{"within": "1h"})
			c.sh("sh", c.Arm)
			var said [2]trial.State
			var both sync.WaitGroup
			start := make(chan bool)
			for n, text := range []string{c.Confirm.Confirm, c.Back} {
				both.Go(func() {
					<-start
					said[n] = c.sh("sh", text)
				})
			}
			close(start)
			both.Wait()
			want := map[trial.Word]string{trial.Confirmed: "new",
				trial.RolledBack: "old"}
			if said[0].Word != said[1].Word || c.read("rules") != want[said[0].Word] {
				t.Errorf("confirming was told %+v, taking back %+v, rules %s", said[0], said[1], c.read("rules"))
			}
			if log := c.read("log"); strings.Contains(log, "keep") == strings.Contains(log, "rollback") {
				t.Errorf("log %s", log)
			}
		})
	}
}

func TestProbes(t *testing.T) {
	t.Parallel()
	c := change(t, map[string]string{
		"probes": "tcp :443\n tcp 192.0.2.1:53 \n\nrun ping -c1 'gw'\ntcp [2001:db8::1]:80\n"})
	want := []trial.Probe{{TCP: "192.0.2.7:443"}, {TCP: "192.0.2.1:53"}, {Run: "ping -c1 'gw'"},
		{TCP: "[2001:db8::1]:80"}}
	if diff := cmp.Diff(want, c.Probes); diff != "" {
		t.Error(diff)
	}
	if got := want[2].Shell(); got != `exec sh -c -- 'ping -c1 '\''gw'\'''` {
		t.Errorf("%s", got)
	}
	for _, bad := range []string{"tcp", "tcp host", "tcp host:http", "udp host:53", "run", "tcp host:0", "tcp h:70000"} {
		f := frozen(t, changing, map[string]string{"probes": bad, "dir": "/x"})
		if err := f.Check(fleet.Host{Name: "h"}); err == nil || !strings.Contains(err.Error(), "probes: ") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseRefusesConfirms(t *testing.T) {
	t.Parallel()
	step := func(text string) string {
		return "name: a\ndisruptive: true\narguments: {n: {type: int}}\nsteps: [{name: s, confirm: {" + text + "}}]\n"
	}
	refuses(t, []refusal{
		{"nothing to do", step("rollback: ls"), "confirm has no apply"},
		{"no way back", step("apply: ls"), "x:4:28: confirm has no rollback"},
		{"no time", step("apply: ls, rollback: ls, within: 1s"), "within is 1s: want 10s to 1h0m0s"},
		{"probes of a number", step("apply: ls, rollback: ls, probes: n"), "probes: no argument \"n\" of type string"},
		{"in on_fail", "name: a\nsteps: [{name: s, run: ls, on_fail: [{name: t, confirm: {apply: ls, rollback: ls}}]}]\n",
			"a step of kind confirm cannot stand in on_fail"},
		{"too much", step("rollback: ls, apply: '" + strings.Repeat("x ", 30<<10) + "', keep: '" +
			strings.Repeat("x ", 30<<10) + "'"), "the texts of confirm have"},
	})
}

func TestOnlyWhatTheHostSaysOfAChangeIsRead(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"", "armed 5", "muster-confirm:", "muster-confirm: odd 1", "muster-confirm: none x",
		"muster-confirm: armed 5 muster-confirm: ", "muster-confirm: \x1b[31m"} {
		if c, ok := trial.Read(line); ok && line != "muster-confirm: none x" {
			t.Errorf("%q = %+v", line, c)
		}
	}
}

func FuzzReadConfirm(f *testing.F) {
	for _, s := range []string{"muster-confirm: armed 5", "muster-confirm: rolledback 0 apply 3",
		"muster-confirm: none guard 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if c, ok := trial.Read(line); ok && (c.Word == "" || strings.ContainsAny(c.More, "\n")) {
			t.Errorf("%q = %+v", line, c)
		}
	})
}

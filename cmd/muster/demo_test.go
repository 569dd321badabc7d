package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cli"
	"muster/internal/demo"
	"muster/jobs"
)

// demoIn makes a command of the demo with its temporary files in a folder of the test.
func demoIn(t *testing.T, args ...string) (cmd *exec.Cmd, temp string) {
	t.Helper()
	temp = t.TempDir()
	cmd = exec.Command(filepath.Join(bin(t), "muster"), append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	return cmd, temp
}

func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTheDemoTellsItsStory(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{"redis-server ": nil, "a Redis inside this process": {"--embedded"}} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			tellsItsStory(t, want, args...)
		})
	}
}

func tellsItsStory(t *testing.T, redis string, args ...string) {
	cmd, temp := demoIn(t, append(args, "--hosts", "30", "--slots", "2", "-o", "json")...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var story demo.Story
	if err := json.Unmarshal(out, &story); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.HasPrefix(story.Redis, redis) {
		t.Errorf("the queue is in %q, want %q", story.Redis, redis)
	}
	if len(story.Tasks) != 2 || story.Hosts != 30 || story.Children < 1 || story.Overlaps != 0 {
		t.Fatalf("story is %+v", story)
	}
	big, small := story.Tasks[0], story.Tasks[1]
	// One host refuses, one shows a wrong key, one cuts the line.
	want := jobs.Counts{jobs.Succeeded: 27, jobs.Unreachable: 1, jobs.Failed: 1, jobs.Unknown: 1}
	for o, n := range big.Outcomes {
		if n != want[o] {
			t.Errorf("the big task has %d %s, want %d", n, o, want[o])
		}
	}
	if big.Operator != "alice" || small.Operator != "bob" || small.Total != 4 ||
		small.Outcomes[jobs.Succeeded] != 4 || small.Submitted.Before(big.Submitted.Time) ||
		small.FirstStart.IsZero() || small.Finished.IsZero() {
		t.Errorf("the small task is %+v", small)
	}
	r := story.Rules
	if r.Operator != "carol" || r.Total != len(r.RolledBack)+r.New || r.Old != 1 || len(r.Waves) < 3 ||
		!slices.Equal(r.RolledBack, []string{"fw0026"}) || r.Outcomes[jobs.Succeeded] != r.New || r.New < 8 {
		t.Errorf("the chapter about rules is %+v", r)
	}
	wantEmpty(t, temp)
}

func TestAnInterruptedDemoLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cmd, temp := demoIn(t, "--hosts", "30")
	p := startDemo(t, cmd)
	p.await("bob submits")
	cmd.Process.Signal(syscall.SIGINT)
	if code := p.end(); code != cli.ExitInterrupted {
		t.Errorf("exit %d, want %d", code, cli.ExitInterrupted)
	}
	wantEmpty(t, temp)
}

// A demo whose words nobody reads any more, as behind head, still takes everything down.
func TestADemoThatNobodyReadsLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	cmd, temp := demoIn(t, "--hosts", "10")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := read.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	read.Close()
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() < 0 {
		t.Errorf("the demo was killed: %v", err)
	}
	wantEmpty(t, temp)
}

func startDemo(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, name: "demo", cmd: cmd, log: newWatched(), done: make(chan struct{})}
	cmd.Stderr = p.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		cmd.Wait()
		close(p.done)
	}()
	return p
}

func TestASecondInterruptEndsTheDemoAtOnce(t *testing.T) {
	t.Parallel()
	cmd, temp := demoIn(t, "--hosts", "10")
	p := startDemo(t, cmd)
	p.await("bob submits")
	socket, err := filepath.Glob(filepath.Join(temp, "*", "api.sock"))
	if err != nil || len(socket) != 1 {
		t.Fatalf("sockets %q, %v", socket, err)
	}
	h := &house{t: t, bin: cmd.Path, url: "unix://" + socket[0]}
	id := h.submit("fw0001", "sleep 60")
	h.awaitJob(jobs.NewID(id, "fw0001"), jobs.Running)
	n := h.node()
	cmd.Process.Signal(syscall.SIGINT)
	p.await("one more Ctrl-C")
	begun := time.Now()
	cmd.Process.Signal(syscall.SIGINT)
	if code := p.end(); code != cli.ExitInterrupted {
		t.Errorf("exit %d, want %d", code, cli.ExitInterrupted)
	}
	// A master that was asked only once waits 10 s for the job in hand.
	if d := time.Since(begun); d > 9*time.Second {
		t.Errorf("it ended after %s", d)
	}
	for _, c := range append(n.Children, jobs.Child{PID: n.PID}) {
		if !isDead(c.PID) {
			t.Errorf("process %d is left behind", c.PID)
		}
	}
	wantEmpty(t, temp)
}

// isDead reports whether a process is dead and only waits to be reaped.
func isDead(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

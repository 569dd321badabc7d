package remote_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

func TestRealRecordedStepIsStopped(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			for i, test := range []struct {
				name, shell string
				naps, code  int
			}{
				{"a command", "exec sleep NAP", 1, -1},
				{"one that ignores TERM", `trap "" TERM; while :; do sleep NAP; done`, 1, -1},
				{"one that ends in its own way", `trap 'exit 3' TERM; sleep NAP & wait`, 1, 3},
				{"a group of its own inside", "timeout 100 sleep NAP; sleep NAP", 1, -1},
			} {
				nap, r := newNap(), step(fmt.Sprint("stop", i), int64(i)+1)
				got := stopAt(t, h.connect(), remote.Command{
					Shell: "echo begun; " + strings.ReplaceAll(test.shell, "NAP", nap), Bound: time.Minute, Record: &r,
				}, nap, test.naps)
				t.Log(test.name)
				wantStopped(t, got, test.code)
				if left := naps(t, nap); len(left) > 0 {
					t.Errorf("processes %v are left", left)
				}
				if out := string(got.result.Output.Bytes()); out != "begun\n" {
					t.Errorf("output %q", out)
				}
				// A later attempt gets the same answer.
				_, err := h.run(again(step(fmt.Sprint("stop", i), int64(i)+1)), "echo again")
				wantKind(t, err, remote.KindStopped, true)
			}
		})
	}
}

// A step whose node is gone can be stopped by another one.
func TestRealRecordedStepIsStoppedByTheNextAttempt(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{Config: []string{"MaxSessions 1"}})
	nap := newNap()
	h.begin(step("j", 1), "echo begun; exec sleep "+nap, nap)
	r := again(step("j", 2))
	r.Look = true
	stop := make(chan struct{})
	close(stop)
	result, err := h.connect().Run(t.Context(), remote.Command{
		Shell: "echo not this", Bound: time.Minute, Stop: stop, Record: &r})
	wantKind(t, err, remote.KindStopped, true)
	if left := naps(t, nap); len(left) > 0 || string(result.Output.Bytes()) != "begun\n" {
		t.Errorf("processes %v are left, output %q", left, result.Output.Bytes())
	}
}

// begin starts a step that naps, and cuts the connection once it does.
func (h *recordingHost) begin(r remote.Record, shell, nap string) {
	h.t.Helper()
	conn := h.connect()
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn.Run(h.t.Context(), remote.Command{Shell: shell, Bound: time.Minute, Record: &r, Stdin: strings.NewReader("")})
	}()
	awaitNaps(h.t, nap, 1)
	conn.Close()
	<-done
}

func awaitNaps(t testing.TB, nap string, n int) {
	t.Helper()
	late := time.After(20 * time.Second)
	for tick := time.Tick(50 * time.Millisecond); len(naps(t, nap)) < n; {
		select {
		case <-tick:
		case <-late:
			t.Fatalf("%d processes, want %d", len(naps(t, nap)), n)
		}
	}
}

// timeout(1) ends its child and the group. The remaining processes of the step are ended too.
func TestRealRecordedStepIsBounded(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			for i, shell := range []string{
				`echo begun; sleep NAP`,
				`echo begun; (trap "" TERM; sleep NAP; sleep NAP) & sleep NAP`,
				`echo begun; timeout -s CONT 100 sh -c 'trap "" TERM; sleep NAP; sleep NAP'`,
			} {
				nap, r := newNap(), step(fmt.Sprint("bound", i), 1)
				result, err := h.connect().Run(t.Context(), remote.Command{
					Shell: strings.ReplaceAll(shell, "NAP", nap), Bound: time.Second, Record: &r})
				if remote.KindOf(err) != remote.KindTimeout || string(result.Output.Bytes()) != "begun\n" {
					t.Errorf("%s: got %+v, %v, want a timeout", shell, result, err)
				}
				if left := naps(t, nap); len(left) > 0 {
					t.Errorf("%s: processes %v are left", shell, left)
				}
			}
		})
	}
}

// A daemon that a step leaves behind holds neither its end nor the host.
func TestRealRecordedStepLeavesADaemon(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	result, err := h.run(step("j", 1), "sleep 5 & echo started")
	if err != nil || !result.Open || string(result.Output.Bytes()) != "started\n" {
		t.Errorf("got %+v, %v, want open output", result, err)
	}
	result, err = h.run(step("k", 2), "echo next")
	wantEnd(t, result, err, "exit 0: next\n")
}

// A flood does not fill the disk of a host, and says how much of it is gone.
func TestRealRecordedFlood(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			for _, r := range []remote.Record{step("j", 1), again(step("j", 2))} {
				result, err := h.run(r, "echo begin; head -c 20000000 /dev/zero; echo end")
				if o := result.Output; err != nil || o.Size() != 20_000_010 ||
					!strings.HasPrefix(string(o.Head), "begin\n\x00") || !strings.HasSuffix(string(o.Tail), "\x00end\n") {
					t.Errorf("got %d bytes, %v, want 20000010, begin … end", o.Size(), err)
				}
			}
			files, err := filepath.Glob(filepath.Join(h.dir, "*"))
			if err != nil {
				t.Fatal(err)
			}
			total := int64(0)
			for _, path := range files {
				if info, err := os.Stat(path); err == nil {
					total += info.Size()
				}
			}
			if total > 600<<10 {
				t.Errorf("%d bytes on the disk of the host", total)
			}
		})
	}
}

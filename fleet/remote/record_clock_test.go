package remote_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/testkit/sshtest"
)

// A clockedHost keeps records, and its clock is wrong.
type clockedHost struct {
	*recordingHost
	clock sshtest.Clock
	off   time.Duration
}

func newClockedHost(t *testing.T, o sshtest.Options, off time.Duration) *clockedHost {
	t.Helper()
	clock := sshtest.NewClock(t, off)
	return &clockedHost{recordingHost: newRecordingHost(t, clock.On(o)), clock: clock, off: off}
}

// jump sets the clock, and gives all records the times that they would have been written at.
func (h *clockedHost) jump(off time.Duration) {
	h.t.Helper()
	h.off = off
	h.clock.Set(off)
	files, err := filepath.Glob(filepath.Join(h.dir, "*"))
	if err != nil || len(files) == 0 {
		h.t.Fatalf("%v, %v", files, err)
	}
	for _, file := range append(files, h.dir) {
		at := time.Now().Add(off)
		if err := os.Chtimes(file, at, at); err != nil && !os.IsNotExist(err) {
			h.t.Fatal(err)
		}
	}
}

// told holds what a command read from the clock against what it is off by.
func (h *clockedHost) told(what, said string, off time.Duration) {
	h.t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(said), 10, 64)
	is := time.Until(time.Unix(n, 0))
	if err != nil || (is-off).Abs() > 10*time.Minute {
		h.t.Errorf("%s: the clock of the host says %q, which is off by %s, want %s", what, said, is, off)
	}
}

// Whatever the clock of a host says, and however it jumps, what its record tells is true.
func TestRealRecordOnAHostWithAWrongClock(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		for _, off := range clocksOff(system, -time.Hour, 8*24*time.Hour, -8*24*time.Hour) {
			t.Run(fmt.Sprintf("%s, %s", system, off), func(t *testing.T) {
				t.Parallel()
				h := newClockedHost(t, options, off)
				h.takenByTheNext()
				h.followedOverAJump()
				h.bounded()
				h.carriesItsMarker()
				if n := h.clock.Asked(); n != 3 {
					t.Errorf("somebody asked the clock %d times, the commands themselves did 3 times", n)
				}
			})
		}
	}
}

// clocksOff returns the clock offsets to test; only this machine's own tools get all of them.
func clocksOff(system string, offs ...time.Duration) []time.Duration {
	if system == "as it is" {
		return offs
	}
	return offs[:1]
}

// takenByTheNext does a step, and asks for its end when the clock stands elsewhere.
func (h *clockedHost) takenByTheNext() {
	h.t.Helper()
	defer h.jump(h.off)
	first, err := h.run(step("j", 1), "date +%s; exit 3")
	if err != nil || first.ExitCode != 3 {
		h.t.Fatalf("got %+v, %v", first, err)
	}
	h.told("the first step", string(first.Output.Bytes()), h.off)
	h.wantStarted(0)
	h.jump(-h.off)
	result, err := h.run(again(step("j", 2)), "echo twice")
	wantEnd(h.t, result, err, "exit 3, attached: "+string(first.Output.Bytes()))
	_, err = h.run(step("k", 0), "echo too late")
	wantKind(h.t, err, remote.KindStale, false)
}

// wantStarted holds a started line against the boot of the host and how long it is up.
func (h *clockedHost) wantStarted(n int) {
	h.t.Helper()
	line, err := os.ReadFile(only(h.t, filepath.Join(h.dir, "*.started"), n))
	boot, err2 := os.ReadFile("/proc/sys/kernel/random/boot_id")
	now, err3 := os.ReadFile("/proc/uptime")
	if err != nil || err2 != nil || err3 != nil {
		h.t.Fatal(err, err2, err3)
	}
	up, _ := strconv.ParseFloat(strings.Fields(string(now))[0], 64)
	f := strings.Fields(string(line))
	if len(f) != 5 || f[0] != strings.TrimSpace(string(boot)) {
		h.t.Fatalf("the started line is %q, want boot %s", line, boot)
	}
	if began, err := strconv.ParseFloat(f[1], 64); err != nil || began > up || began < up-600 {
		h.t.Errorf("it began when the host was up for %s s, which is up for %.0f s", f[1], up)
	}
}

// followedOverAJump has the clock jump in the middle of a step: others wait no longer for
// it, the next attempt follows it, and it runs once.
func (h *clockedHost) followedOverAJump() {
	h.t.Helper()
	dir, off := h.t.TempDir(), h.off
	in, release, log := filepath.Join(dir, "in"), filepath.Join(dir, "go"), filepath.Join(dir, "log")
	shell := fmt.Sprintf("date +%%s; echo in >> %s; : > %s; until [ -e %s ]; do sleep .1; done; date +%%s", log, in,
		release)
	follow := func(r remote.Record) <-chan string {
		conn, ended := h.connect(), make(chan string, 1)
		go func() {
			result, err := conn.Run(h.t.Context(), remote.Command{Shell: shell, Bound: time.Minute, Record: &r})
			ended <- fmt.Sprintf("exit %d, %t, %v: %s", result.ExitCode, result.Attached, err, result.Output.Bytes())
		}()
		return ended
	}
	first := follow(step("m", 3))
	awaitFile(h.t, in)
	for _, jumped := range []time.Duration{-off, off, 0} {
		h.jump(jumped)
		_, err := h.run(step("other", 4), "echo other")
		wantKind(h.t, err, remote.KindBusy, false)
		var e *remote.Error
		if errors.As(err, &e) && (e.Wait <= 0 || e.Wait > time.Minute) {
			h.t.Errorf("the clock is %s off: it is at work for %s more, of a minute", jumped, e.Wait)
		}
	}
	second := follow(again(step("m", 5)))
	h.jump(2 * off)
	if err := os.WriteFile(release, nil, 0o600); err != nil {
		h.t.Fatal(err)
	}
	one, two := <-first, <-second
	_, said, _ := strings.Cut(one, ": ")
	if one != "exit 0, false, <nil>: "+said || two != "exit 0, true, <nil>: "+said {
		h.t.Errorf("the first says %q, the second %q", one, two)
	}
	before, after, _ := strings.Cut(said, "\n")
	h.told("before the jump", before, off)
	h.told("behind it", after, 2*off)
	if text, err := os.ReadFile(log); err != nil || string(text) != "in\n" {
		h.t.Errorf("it ran %q, %v, want once", text, err)
	}
}

// bounded tells a step that ran over its bound from one that ended so, wherever the clock
// went meanwhile.
func (h *clockedHost) bounded() {
	h.t.Helper()
	r := step("n", 6)
	jump := fmt.Sprintf("echo %d > %s; ", int64(-3*h.off/time.Second), h.clock.File())
	_, err := h.connect().Run(h.t.Context(), remote.Command{Shell: jump + "sleep 300", Bound: time.Second,
		Record: &r})
	wantKind(h.t, err, remote.KindTimeout, true)
	result, err := h.run(step("o", 7), jump+"exit 124")
	wantEnd(h.t, result, err, "exit 124: ")
}

// carriesItsMarker has a marker say the same for as long, and refuse the same.
func (h *clockedHost) carriesItsMarker() {
	h.t.Helper()
	h.want("the first marker", h.mark(marker("j1", 8)), "ours")
	for _, off := range []time.Duration{-h.off, 0, h.off, 60 * 24 * time.Hour} {
		h.jump(off)
		found, err := h.connect().Mark(h.t.Context(), marker("j2", 9))
		is := marker("j1", 8)
		if err != nil || found.Other == nil || found.Other.Token != is.Token || found.Other.Until != is.Until {
			h.t.Fatalf("off by %s: found %+v, %v", off, found.Other, err)
		}
	}
	r := step("j0", 7)
	r.Marked, r.Step = true, 1
	_, err := h.run(r, "echo late")
	wantKind(h.t, err, remote.KindStale, false)
}

// Records are cleaned by the clock that makes tokens: a week of it, whatever the host thinks.
func TestRealRecordsAreCleanedAfterAWeekOfTheQueuesClock(t *testing.T) {
	t.Parallel()
	const day = 86400
	for system, options := range recordSystems(t) {
		for _, off := range clocksOff(system, 30*24*time.Hour, 0, -30*24*time.Hour) {
			t.Run(fmt.Sprintf("%s, %s", system, off), func(t *testing.T) {
				t.Parallel()
				h := newClockedHost(t, options, 0)
				record := func(job string, days, seconds int64) string {
					t.Helper()
					result, err := h.run(step(job, days*day+seconds), "echo "+job)
					wantEnd(t, result, err, "exit 0: "+job+"\n")
					files, _ := filepath.Glob(filepath.Join(h.dir, "*.started")) // the pattern is right
					return files[len(files)-1]
				}
				first := record("first", 0, 0)
				h.jump(off)
				second := record("second", 2, 0)
				result, err := h.run(again(step("first", 2*day+60)), "echo twice")
				wantEnd(t, result, err, "exit 0, attached: first\n")
				record("third", 6, 0)
				awaitSwept(t, h.dir, step("", 6*day).Token)
				for _, path := range []string{first, second} {
					if _, err := os.Stat(path); err != nil {
						t.Errorf("gone before its week is over: %v", err)
					}
				}
				h.jump(-off)
				record("fourth", 8, 0)
				awaitSwept(t, h.dir, step("", 8*day).Token)
				awaitGone(t, strings.TrimSuffix(first, "started")+"*")
				if _, err := os.Stat(second); err != nil {
					t.Errorf("gone before its week is over: %v", err)
				}
				// A missing record proves nothing, not even for the job that created the folder.
				_, err = h.run(again(step("first", 8*day+60)), "echo twice")
				wantKind(t, err, remote.KindUntold, false)
				young := again(step("young", 8*day+120))
				young.Since = step("", 2*day).Token
				result, err = h.run(young, "echo now")
				wantEnd(t, result, err, "exit 0: now\n")
				if n := h.clock.Asked(); n != 0 {
					t.Errorf("somebody asked the clock of the host %d times", n)
				}
			})
		}
	}
}

// awaitSwept waits until records were looked through for what is too old, by a token.
func awaitSwept(t *testing.T, dir string, token int64) {
	t.Helper()
	await(t, func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "swept"))
		return strings.TrimSpace(string(text)) == fmt.Sprintf("%09d", token/1e9)
	})
}

func awaitGone(t *testing.T, pattern string) {
	t.Helper()
	await(t, func() bool {
		files, err := filepath.Glob(pattern)
		return err == nil && len(files) == 0
	})
}

func awaitFile(t testing.TB, path string) {
	t.Helper()
	await(t, func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

func await(t testing.TB, done func() bool) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for tick := time.Tick(10 * time.Millisecond); !done(); {
		select {
		case <-tick:
		case <-late:
			t.Fatal("it does not come")
		}
	}
}

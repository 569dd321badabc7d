package remote_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/fakefleet"
	"muster/testkit/sshtest"
)

// marker is one of a job, with a token of so many seconds, that says something for an hour.
func marker(job string, token int64) remote.Marker {
	at := step("", token).Token
	return remote.Marker{Group: "pair1", Host: "a", Job: job, Token: at, Until: at + 3600e6}
}

// mark writes one over a connection of its own, and tells whose it found.
func (h *recordingHost) mark(m remote.Marker) string {
	h.t.Helper()
	made, err := h.connect().Mark(h.t.Context(), m)
	switch {
	case err != nil:
		return string(remote.KindOf(err))
	case made.Unfenced != "":
		return "unfenced"
	case made.Other != nil:
		return made.Other.Job
	}
	return "ours"
}

func (h *recordingHost) want(what, got, want string) {
	h.t.Helper()
	if got != want {
		h.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// Whose a marker is, and what may be done about it.
func TestRealMarker(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			gone := marker("j1", 1)
			gone.Off = true
			h.want("taken away where nothing ever was", h.mark(gone), "record") // there is no folder
			h.want("the first", h.mark(marker("j1", 1)), "ours")
			h.want("the same again", h.mark(marker("j1", 2)), "ours")
			h.want("an older attempt", h.mark(marker("j1", 1)), "stale")
			h.want("another job", h.mark(marker("j2", 3)), "j1")

			found, err := h.connect().Mark(t.Context(), marker("j2", 3))
			is := marker("j1", 2)
			if err != nil || found.Other == nil || found.Other.Token != is.Token || found.Other.Until != is.Until ||
				found.Other.Group != "pair1" || found.Other.Host != "a" {
				t.Fatalf("found %+v, %v", found.Other, err)
			}
			other := marker("j2", 3)
			other.Off = true
			h.want("another one takes it away", h.mark(other), "ours")
			h.want("and it is there", h.mark(marker("j2", 3)), "j1")

			over := marker("j2", 4)
			over.Over = *found.Other
			h.want("put over it", h.mark(over), "ours")
			h.want("the first is out", h.mark(marker("j1", 5)), "j2")
			over = marker("j3", 6)
			over.Over = *found.Other
			h.want("put over one that is not there any more", h.mark(over), "j2")
			other.Token = over.Token
			h.want("taken away", h.mark(other), "ours")
			h.want("free", h.mark(marker("j3", 7)), "ours")

			file := filepath.Join(h.dir, "marker")
			if err := os.WriteFile(file, []byte("torn"), 0o600); err != nil {
				t.Fatal(err)
			}
			h.want("torn", h.mark(marker("j3", 8)), "-")
			found, err = h.connect().Mark(t.Context(), marker("j3", 8))
			if err != nil || found.Other == nil {
				t.Fatalf("found %+v, %v", found, err)
			}
			over = marker("j3", 9)
			over.Over = *found.Other
			h.want("put over a torn one", h.mark(over), "ours")

			// A step finds the same folder, and no marker is in its way.
			result, err := h.run(step("j9", 10), "echo on")
			wantEnd(t, result, err, "exit 0: on\n")
		})
	}
}

// A step of a job that has marked its group is refused where another one did so since: its
// worker stood still for so long that others took the group for free. And no marker gives
// way under a step.
func TestRealMarkerOfAnotherJobRefusesAStep(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			try := func(job string, token int64) (remote.Result, error) {
				r := step(job, token)
				r.Marked, r.Step = true, int(token)
				return h.run(r, "echo did it")
			}
			result, err := try("j0", 1)
			wantEnd(t, result, err, "exit 0: did it\n") // none is carried, as behind a new installation
			h.want("the first", h.mark(marker("j1", 2)), "ours")
			result, err = try("j1", 3)
			wantEnd(t, result, err, "exit 0: did it\n")
			found, err := h.connect().Mark(t.Context(), marker("j2", 5))
			if err != nil || found.Other == nil {
				t.Fatalf("found %+v, %v", found, err)
			}
			over := marker("j2", 6)
			over.Over = *found.Other

			nap := newNap()
			h.begin(step("j3", 4), "echo begun; exec sleep "+nap, nap)
			h.want("put over it under a step", h.mark(over), "busy")
			h.want("which left it", h.mark(marker("j2", 6)), "j1")
			for _, pid := range naps(t, nap) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGKILL)
			}
			h.want("put over it behind the step", h.mark(over), "ours")

			_, err = try("j1", 5)
			wantKind(t, err, remote.KindStale, false)
			if err == nil || !strings.Contains(err.Error(), "marker of job j2") {
				t.Errorf("it says %v", err)
			}
			result, err = h.run(step("j4", 5), "echo on") // of a job that disturbs nobody
			wantEnd(t, result, err, "exit 0: on\n")
			result, err = try("j5", 7) // that marker is of before
			wantEnd(t, result, err, "exit 0: did it\n")
		})
	}
}

// Of many who come at once, one is there.
func TestRealMarkerIsOneJobs(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			var all sync.WaitGroup
			var ours atomic.Int32
			for i := range 8 {
				conn := h.connect()
				all.Go(func() {
					made, err := conn.Mark(t.Context(), marker("job"+string(rune('0'+i)), 1))
					if err != nil {
						t.Error(err)
					} else if made.Other == nil {
						ours.Add(1)
					}
				})
			}
			all.Wait()
			if ours.Load() != 1 {
				t.Errorf("%d of 8 jobs have the marker, want 1", ours.Load())
			}
		})
	}
}

// A host that cannot carry a marker says so, and a silent host does not count as one of those.
func TestRealMarkerIsNotCarried(t *testing.T) {
	t.Parallel()
	h := newRecordingHost(t, sshtest.Options{})
	h.host.Fence = fleet.FenceNone
	h.want("no fence", h.mark(marker("j", 1)), "unfenced")
	h.config.RecordDir = "/proc/none"
	h.host.Fence = fleet.FenceAuto
	home := newRecordingHost(t, sshtest.Options{Config: []string{"SetEnv HOME=/proc"}})
	home.host.Fence, home.config.RecordDir = fleet.FenceAuto, "/proc/none"
	h.want("no folder", home.mark(marker("j", 1)), "unfenced")
	home.host.Fence = fleet.FenceRequired
	h.want("no folder, and it must", home.mark(marker("j", 1)), "record")

	forced := newRecordingHost(t, sshtest.Options{Config: []string{"ForceCommand echo welcome"}})
	h.want("something else", forced.mark(marker("j", 1)), "mute")

	full := newRecordingHost(t, sshtest.Options{})
	h.want("first", full.mark(marker("j", 1)), "ours")
	if err := os.Mkdir(filepath.Join(full.dir, "marker.new"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.want("cannot be written", full.mark(marker("j", 2)), "record")

	// A lock that cannot be made, because it points to nowhere, is told as what it is.
	torn := newRecordingHost(t, sshtest.Options{})
	h.want("first", torn.mark(marker("j", 1)), "ours")
	found, err := torn.connect().Mark(t.Context(), marker("k", 2))
	if err != nil || found.Other == nil {
		t.Fatalf("found %+v, %v", found, err)
	}
	lock := filepath.Join(torn.dir, "lock")
	if err := os.Symlink("/proc/none/lock", lock); err != nil {
		t.Fatal(err)
	}
	over := marker("k", 3)
	over.Over = *found.Other
	_, err = torn.connect().Mark(t.Context(), over)
	wantKind(t, err, remote.KindRecord, false)
	if err == nil || !strings.Contains(err.Error(), "the lock cannot be opened") {
		t.Errorf("it says %v", err)
	}

	bad := marker("a job", 1)
	h.want("blanks", full.mark(bad), "invalid")
	bad = marker("j", 0)
	bad.Token = 0
	h.want("no token", full.mark(bad), "invalid")
	bad = marker("j'$(touch /tmp/x)", 1)
	bad.Job = strings.ReplaceAll(bad.Job, " ", "")
	h.want("quotes", full.mark(bad), "j")
}

// Pretended hosts carry markers as others do, see the tests of twins.
func TestPretendedHostsCarryAMarker(t *testing.T) {
	t.Parallel()
	f, err := fakefleet.Start(fakefleet.Config{Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteFiles(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	host := f.Hosts()[0]
	host.Fence = fleet.FenceRequired
	made, err := connect(t, host).Mark(t.Context(), marker("j", 1))
	if err != nil || made != (remote.Marking{}) {
		t.Errorf("got %+v, %v", made, err)
	}
	made, err = connect(t, host).Mark(t.Context(), marker("k", 2))
	if err != nil || made.Other == nil || made.Other.Job != "j" {
		t.Errorf("got %+v, %v", made, err)
	}
}

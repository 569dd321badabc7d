package remote_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet/remote"
)

// glance looks at a step, with the token of somebody who comes later.
func (h *recordingHost) glance(r remote.Record, peek bool) (remote.Result, int64, error) {
	h.t.Helper()
	began := int64(0)
	r.Look, r.Again, r.Glance, r.Peek = true, true, true, peek
	result, err := h.connect().Run(h.t.Context(), remote.Command{Shell: ":", Bound: time.Minute, Record: &r,
		Attached: func(token int64) { began = token }})
	return result, began, err
}

// A mere question about a step is answered at once, whether the step runs, has ended, never
// began or belongs to another attempt. It starts nothing, and with peek it writes nothing.
func TestRealRecordTellsWhoOnlyLooks(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			_, _, err := h.glance(step("j", 9), false)
			wantKind(t, err, remote.KindRecord, false)
			if _, err := os.Stat(h.dir); err == nil {
				t.Error("who looks makes a folder")
			}
			nap := newNap()
			h.begin(step("j", 1), "echo begun; sleep "+nap+"; echo over", nap)
			for _, peek := range []bool{false, true} {
				before := time.Now()
				_, _, err = h.glance(step("j", 9), peek)
				wantKind(t, err, remote.KindWork, false)
				var e *remote.Error
				if !errors.As(err, &e) || e.Wait < time.Second || e.Wait > time.Minute || time.Since(before) > 20*time.Second {
					t.Errorf("peek %t: %v, wait %+v", peek, err, e)
				}
			}
			_, _, err = h.glance(step("other", 9), false)
			wantKind(t, err, remote.KindBusy, false)
			for _, pid := range naps(t, nap) {
				n, _ := strconv.Atoi(pid)
				syscall.Kill(n, syscall.SIGKILL)
			}
			for _, peek := range []bool{true, false, true} {
				result, began, err := h.glance(step("j", 9), peek)
				said := string(result.Output.Bytes()) // a shell says as well that its sleep was killed
				if err != nil || result.ExitCode != 0 || !strings.HasPrefix(said, "begun\n") ||
					!strings.HasSuffix(said, "over\n") {
					t.Errorf("peek %t: %+v, %q, %v", peek, result, said, err)
				}
				if want := step("j", 1).Token; began != want {
					t.Errorf("peek %t: begun by %d, want %d", peek, began, want)
				}
			}
			_, _, err = h.glance(step("j", 0), false)
			wantKind(t, err, remote.KindStale, false)

			// If a step never began, peek lets an older attempt still begin it, and look does not.
			never := step("never", 20)
			never.Since = step("", 10).Token
			_, _, err = h.glance(never, true)
			wantKind(t, err, remote.KindNever, false)
			if files, _ := filepath.Glob(filepath.Join(h.dir, "*.-.-.*")); len(files) > 0 {
				t.Errorf("who peeks has written %v", files)
			}
			_, _, err = h.glance(never, false)
			wantKind(t, err, remote.KindNever, false)
			late := step("never", 15)
			_, err = h.run(late, "echo late")
			wantKind(t, err, remote.KindStale, false)
		})
	}
}

package remote_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet/remote"
)

// A trap of a step that is stopped hears of it once, and has two whole seconds: what it
// calls to tidy up is left alone for as long. Several are stopped at a time, because of two
// signals that come close together the second one is lost.
func TestRealStopGivesATrapOneTermAndTwoSeconds(t *testing.T) {
	t.Parallel()
	for system, options := range recordSystems(t) {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			h := newRecordingHost(t, options)
			var all sync.WaitGroup
			for i := range 4 {
				trapped := *h
				trapped.dir = filepath.Join(lastingDir(t), "records") // one step at a time in each
				trapped.config.RecordDir = trapped.dir
				all.Go(func() { trapped.stopTrap(i%2 == 0) })
			}
			all.Wait()
		})
	}
}

// stopTrap stops a step whose trap takes nearly two seconds.
func (h *recordingHost) stopTrap(recorded bool) {
	t, stop, nap := h.t, make(chan struct{}), newNap()
	heard := h.dir + ".heard"
	cmd := remote.Command{Bound: time.Minute, Stop: stop, Shell: fmt.Sprintf(
		`trap 'echo term >>%[1]s; sleep 1.8; sh -c "echo tidy >>%[1]s"; exit 3' TERM
		sleep %[2]s & wait; wait; wait`, heard, nap)}
	if recorded {
		r := step("trap", 1)
		cmd.Record = &r
	}
	var begun sync.WaitGroup
	begun.Go(func() {
		awaitNaps(t, nap, 1)
		close(stop)
	})
	client, err := remote.New(h.config)
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	c, err := client.Connect(t.Context(), h.host)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	result, err := c.Run(t.Context(), cmd)
	begun.Wait()
	said, _ := os.ReadFile(heard) // what cannot be read is not as wanted
	if remote.KindOf(err) != remote.KindStopped || result.ExitCode != 3 || string(said) != "term\ntidy\n" {
		t.Errorf("recorded %t: exit %d, %v; the trap said %q, want one term and a tidy end with 3", recorded,
			result.ExitCode, err, strings.Fields(string(said)))
	}
}

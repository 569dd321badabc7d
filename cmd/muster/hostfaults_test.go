package main

import (
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// probe and slow try a host once, so that a test need not wait for further tries. slow takes longer
// than it may.
const (
	probe = `
name: probe
retry: {submit: 1, delay: 1s}
timeout: 10s
steps: [{name: look, timeout: 5s, run: "sleep 0.1; echo hi"}]
`
	slow = `
name: slow
timeout: 10s
steps: [{name: sleep, timeout: 1s, run: "sleep 60"}]
`
)

func TestHostsThatNeverComeToAnEnd(t *testing.T) {
	t.Parallel()
	faults := []struct {
		fakefleet.Personality
		jobs.Outcome
		words string
	}{
		{fakefleet.Silent, jobs.Unreachable, "it said nothing"},
		{fakefleet.Drip, jobs.Unreachable, "it said \"S"},
		{fakefleet.HangAfterAuth, jobs.Unreachable, "did not open a session within 2s"},
		{fakefleet.Cut, jobs.Unknown, "the connection ended"},
		{fakefleet.Freeze, jobs.Unknown, "silent"},
		{fakefleet.Flood, jobs.Succeeded, ""},
		{fakefleet.NoNewline, jobs.Succeeded, ""},
		{fakefleet.Normal, jobs.Timeout, "1s"},
		{fakefleet.IgnoreTerm, jobs.Timeout, "1s"},
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: len(faults), FloodBytes: 20 << 20,
		Personality: func(i int) fakefleet.Personality { return faults[i].Personality }})
	h := newCellar(t, inventory)
	h.write("probe.yaml", probe)
	h.write("slow.yaml", slow)
	h.configure(map[string]any{
		"master":   map[string]any{"children": 2, "slots": 5},
		"runbooks": []string{h.file("probe.yaml"), h.file("slow.yaml")},
		"ssh": map[string]any{"tcp": "2s", "handshake": "2s", "auth": "2s", "channel": "2s",
			"idle": "8s", "keepalive": "1s"},
	})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()

	var slow, probed jobs.TaskInfo
	h.query(&slow, "run", "slow", "--on", "fw[0008-0009]", "--detach")
	if code := h.query(&probed, "run", "probe", "--on", "fw[0001-0007]", "--wait"); code != cli.ExitNotAll {
		t.Errorf("exit %d, want %d", code, cli.ExitNotAll)
	}
	h.wait(slow.Task)
	for i, j := range append(h.jobs(probed.Task), h.jobs(slow.Task)...) {
		want := faults[i]
		if j.Outcome != want.Outcome || !strings.Contains(j.Error, want.words) {
			t.Errorf("%s host: %s, %q; want %s, %q", want.Personality, j.Outcome, j.Error, want.Outcome, want.words)
		}
		if took := j.Finished.Sub(j.Started.Time); took > 20*time.Second {
			t.Errorf("%s host: it took %s", want.Personality, took)
		}
	}
	wantNoOverlap(t, f)
}

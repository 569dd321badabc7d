package remote_test

import (
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/fakefleet"
)

// Pretended hosts have no flock, and say so like others that have none.
func TestPretendedHostsKeepNoRecord(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 100)
	f, err := fakefleet.Start(fakefleet.Config{Hosts: 1, Watch: func(e fakefleet.Entry) {
		if e.Running() && !e.Stops {
			began <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteFiles(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	host := f.Hosts()[0]
	host.Fence = fleet.FenceAuto
	run := func(r remote.Record, shell string) (remote.Result, error) {
		return connect(t, host).Run(t.Context(), remote.Command{
			Shell: shell, Stdin: strings.NewReader("in\n"), Bound: time.Minute, Record: &r})
	}
	result, err := run(step("j", 1), "cat; echo 'a b'; exit 3")
	wantEnd(t, result, err, "exit 3: in\na b\n")
	if result.Unfenced != "flock" {
		t.Errorf("it lacks %q, want flock", result.Unfenced)
	}
	_, err = run(again(step("j", 2)), "true")
	wantKind(t, err, remote.KindUntold, false)
	<-began
	<-began
	r, stop := step("k", 3), make(chan struct{})
	go func() {
		<-began
		close(stop)
	}()
	_, err = connect(t, host).Run(t.Context(), remote.Command{
		Shell: "echo begun; sleep 300", Bound: time.Minute, Record: &r, Stop: stop})
	wantKind(t, err, remote.KindStopped, true)

	host.Fence = fleet.FenceRequired
	_, err = run(step("l", 4), "true")
	wantKind(t, err, remote.KindRecord, false)
}

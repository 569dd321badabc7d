package remote_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/fakefleet"
)

// Pretended hosts keep records, and their own log says what ran.
func TestPretendedHostsKeepRecords(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 100)
	f, err := fakefleet.Start(fakefleet.Config{Hosts: 1, Watch: func(e fakefleet.Entry) {
		if e.Running() && !e.Stops && !e.Orphaned {
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
	host.Fence = fleet.FenceRequired
	run := func(r remote.Record, shell string) (remote.Result, error) {
		return connect(t, host).Run(t.Context(), remote.Command{
			Shell: shell, Stdin: strings.NewReader("in\n"), Bound: time.Minute, Record: &r})
	}
	result, err := run(step("j", 1), "cat; echo 'a b'; exit 3")
	wantEnd(t, result, err, "exit 3: in\na b\n")
	<-began
	result, err = run(again(step("j", 1)), "echo not run")
	wantEnd(t, result, err, "exit 3, attached: in\na b\n")
	_, err = run(step("j", 0), "true")
	wantKind(t, err, remote.KindStale, false)

	r, stop := step("k", 3), make(chan struct{})
	go func() {
		<-began
		close(stop)
	}()
	_, err = connect(t, host).Run(t.Context(), remote.Command{
		Shell: "echo begun; sleep 300", Bound: time.Minute, Record: &r, Stop: stop})
	wantKind(t, err, remote.KindStopped, true)

	u := upload("/etc/rules", 0o644, []byte("rules"))
	put := step("l", 4)
	u.Record = &put
	if err := connect(t, host).Upload(t.Context(), u); err != nil {
		t.Error(err)
	}
	result, err = run(step("m", 5), "cat /etc/rules")
	wantEnd(t, result, err, "exit 0: rules")
	var ran []string
	for _, e := range f.Log() {
		if !e.Stops {
			ran = append(ran, e.Command[:min(len(e.Command), 12)])
		}
	}
	if want := "[cat; echo 'a echo begun;  phase=${1:-b cat /etc/rul]"; fmt.Sprint(ran) != want {
		t.Errorf("the host ran %q", ran)
	}
	if n := f.Stats().Overlaps; n != 0 {
		t.Errorf("%d overlaps", n)
	}
}

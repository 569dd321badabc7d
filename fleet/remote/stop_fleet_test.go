package remote_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet/remote"
	"muster/internal/fakefleet"
)

// TestStopOnPretendedHosts holds what is said of a stop against the hosts' own log.
func TestStopOnPretendedHosts(t *testing.T) {
	t.Parallel()
	kinds := []fakefleet.Personality{fakefleet.Normal, fakefleet.Slow, fakefleet.IgnoreTerm,
		fakefleet.NoNewline, fakefleet.Stuck}
	began := make(chan struct{}, 100)
	f, err := fakefleet.Start(fakefleet.Config{Hosts: len(kinds), SlowFactor: 2,
		Personality: func(i int) fakefleet.Personality { return kinds[i] },
		Watch: func(e fakefleet.Entry) {
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
	stop := make(chan struct{})
	var runs sync.WaitGroup
	errs := make([]error, len(kinds))
	for i, h := range f.Hosts() {
		conn := connect(t, h)
		runs.Go(func() {
			_, errs[i] = conn.Run(t.Context(), remote.Command{
				Shell: "echo begun; sleep 300 & sleep 300", Bound: time.Minute, Stop: stop})
		})
	}
	for range kinds {
		<-began
	}
	close(stop)
	runs.Wait()

	running := map[string]bool{}
	for _, e := range f.Log() {
		if !e.Stops {
			running[e.Host] = e.Running()
		}
	}
	for i, h := range f.Hosts() {
		want := remote.KindStopped
		switch kinds[i] {
		case fakefleet.Stuck:
			want = remote.KindRunning
		case fakefleet.NoNewline:
			want = remote.KindLost // its mark has no end
		}
		if kind := remote.KindOf(errs[i]); kind != want || running[h.Name] != (want != remote.KindStopped) {
			t.Errorf("%s: %s, %v, running: %t, want %s", kinds[i], kind, errs[i], running[h.Name], want)
		}
	}
	if n := f.Stats().Overlaps; n != 0 {
		t.Errorf("%d overlaps", n)
	}
}

// A file on a pretended host is as before, too.
func TestStopOfAnUploadOnAPretendedHost(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 1)
	f, err := fakefleet.Start(fakefleet.Config{Hosts: 1, Watch: func(e fakefleet.Entry) {
		if strings.Contains(e.Command, "muster-upload") && e.Running() && !e.Orphaned {
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
	conn := connect(t, f.Hosts()[0])
	stop, ended := make(chan struct{}), make(chan error, 1)
	u := upload("/etc/rules", 0o644, []byte("hello"))
	never := &signalReader{started: make(chan struct{}), release: make(chan struct{})}
	defer close(never.release)
	u.Content, u.Stop = never, stop
	go func() { ended <- conn.Upload(t.Context(), u) }()
	<-began
	close(stop)
	if err := <-ended; remote.KindOf(err) != remote.KindStopped {
		t.Errorf("got %v, want that it was stopped", err)
	}
	left, err := conn.Run(t.Context(), remote.Command{Shell: "ls /etc", Bound: time.Minute})
	if said := string(left.Output.Bytes()); err != nil || strings.Contains(said, "rules") ||
		strings.Contains(said, ".muster") {
		t.Errorf("there is %q, %v", said, err)
	}
}

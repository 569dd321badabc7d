package memory_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"muster/worker/memory"
)

// The latest of the times stays, also if several processes keep theirs at once.
func TestTheLatestTimeStays(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "node")
	first := memory.NewTimes(dir)
	if since, err := first.Since(); err != nil || !since.IsZero() {
		t.Fatalf("nothing was kept: %s, %v", since, err)
	}
	at := time.Date(2026, 11, 28, 12, 0, 0, 1000, time.UTC)
	var all sync.WaitGroup
	for i := range 9 {
		all.Go(func() {
			if err := memory.NewTimes(dir).Remember(at.Add(time.Duration(i%5) * time.Second)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	want := at.Add(4 * time.Second)
	if since, err := first.Since(); err != nil || !since.Equal(want) {
		t.Errorf("got %s, %v", since, err)
	}
	if err := first.Remember(at); err != nil {
		t.Fatal(err)
	}
	if since, _ := first.Since(); !since.Equal(want) {
		t.Errorf("an earlier time replaced it: %s", since)
	}
}

// A file that is no time is named, and the next time replaces it.
func TestAFileThatIsNoTimeIsReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "times"), []byte("soon"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := memory.NewTimes(dir)
	if _, err := m.Since(); err == nil {
		t.Error("no error")
	}
	at := time.Unix(1e9, 0)
	if err := m.Remember(at); err != nil {
		t.Fatal(err)
	}
	if since, err := m.Since(); err != nil || !since.Equal(at) {
		t.Errorf("got %s, %v", since, err)
	}
}

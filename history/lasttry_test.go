package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/history"
	"muster/internal/proc"
)

// Why the tables are not right is not forgotten when the next try has begun.
func TestWhoWaitsForTheTablesHearsWhyTheLastTryFailed(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(folder, "h.db")
	s := open(t, history.Config{URL: "sqlite://" + file})
	if err := s.Migrate(t.Context()); err == nil || errors.Is(err, history.ErrChanging) {
		t.Fatalf("its folder is a file: %v", err)
	}
	if err := errors.Join(os.Remove(folder), os.Mkdir(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
	lock, err := proc.Lock(file + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	_, _, err = s.Jobs(t.Context(), history.Filter{}, "", 1)
	if !errors.Is(err, history.ErrChanging) || !strings.Contains(err.Error(), "; the last try: mkdir "+folder) {
		t.Errorf("while another server has the tables: %v", err)
	}
}

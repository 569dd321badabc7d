package sqltest

import (
	"errors"
	"testing"

	"muster/history"
)

// Ready opens a store for a test and waits until its tables have the form of this version. It closes
// the store with the test.
func Ready(t testing.TB, cfg history.Config) *history.Store {
	t.Helper()
	s, err := history.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for err = s.Migrate(t.Context()); errors.Is(err, history.ErrChanging); {
		err = s.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

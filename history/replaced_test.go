package history_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/testkit/sqltest"
)

// SQLite goes on with a file that has lost its name, and all that it writes then is lost with the
// process.
func TestAFileThatIsGoneOrReplacedIsSaid(t *testing.T) {
	t.Parallel()
	cfg := sqltest.SQLite(t)
	path := strings.TrimPrefix(cfg.URL, "sqlite://")
	s := open(t, cfg)
	store(t, s, history.Batch{Ended: []api.PastJob{job(taskID(1), "h", jobs.Succeeded, time.Second)}})
	if err := os.Rename(path, path+".aside"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		do         func() error
	}{
		{"gone", path + ": its file: it is gone", func() error { return nil }},
		{"another", "another file has its name", func() error { return os.WriteFile(path, nil, 0o600) }},
		{"back", "", func() error { return os.Rename(path+".aside", path) }},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		_, read := s.Position(t.Context(), "default")
		_, counted := s.Rows(t.Context())
		for _, err := range []error{read, counted} {
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
		}
	}
}

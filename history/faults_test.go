package history_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/testkit/sqltest"
)

func TestServersThatMigrateAtOnceDoItOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		var all sync.WaitGroup
		for range 6 {
			s := open(t, cfg)
			all.Go(func() {
				if err := s.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		store(t, ready(t, cfg), history.Batch{Ended: []api.PastJob{job(taskID(1), "h", jobs.Succeeded, 1)}})
	})
}

func TestTablesOfALaterVersionAreLeftAlone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := open(t, cfg)
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Exec(t.Context(), "insert into goose_db_version (version_id, is_applied) values (99, true)"); err != nil {
			t.Fatal(err)
		}
		err := open(t, cfg).Migrate(t.Context())
		if err == nil || !strings.Contains(err.Error(), "version 99, this muster knows ") {
			t.Errorf("migrate: %v", err)
		}
	})
}

// A new index on ten million jobs takes minutes. Callers that write or read history get an error
// at once, and may continue when the index is there.
func TestAChangeOfTheTablesThatTakesLongIsSaid(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		old := open(t, cfg)
		store(t, old, history.Batch{Ended: []api.PastJob{job(taskID(1), "h", jobs.Succeeded, 1)}})
		s := open(t, cfg)
		last := history.Versions(s)
		if err := history.Later(s, "alter table jobs add column later text not null default '';"); err != nil {
			t.Fatal(err)
		}
		err := history.Tx(t.Context(), old, func(tx *sql.Tx) error {
			if history.IsPostgres(old) {
				if _, err := tx.ExecContext(t.Context(), "lock table jobs in access share mode"); err != nil {
					return err
				}
			}
			_, _, err := s.Jobs(t.Context(), history.Filter{}, "", 1)
			if !errors.Is(err, history.ErrChanging) || !strings.Contains(err.Error(), fmt.Sprintf("from version %d to %d", last,
				last+1)) {
				t.Errorf("while the tables are changed: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if list, _, err := s.Jobs(t.Context(), history.Filter{}, "", 9); err != nil || len(list) != 1 {
			t.Errorf("afterwards: %+v, %v", list, err)
		}
	})
}

// goOn stores entries from the position of the store up to the given one, whatever fails in
// between, and returns the number of failures.
func goOn(t *testing.T, s *history.Store, upTo int, stored func(n int)) (failed int) {
	t.Helper()
	for from := time.Now(); time.Since(from) < 4*time.Minute; {
		p, err := s.Position(t.Context(), "default")
		if err != nil {
			failed++
			continue
		}
		n := 0
		fmt.Sscanf(p.Last, "%d-0", &n)
		if n == upTo {
			return failed
		}
		n++
		id := jobs.NewID(taskID(1), fmt.Sprintf("h%d", n))
		j := job(taskID(1), id.Host(), jobs.Succeeded, time.Second)
		_, err = s.Put(t.Context(), history.Batch{Zone: "default", After: p.Last, Last: fmt.Sprintf("%d-0", n),
			Events: []jobs.Happening{happened(n, "take", id, map[string]any{"attempt": 1.0}), happened(n, "end", id, nil)},
			Ended:  []api.PastJob{j}}, begin)
		if err != nil {
			failed++
			continue
		}
		stored(n)
	}
	t.Fatal("it does not come to the end")
	return 0
}

func TestABatchThatIsRefusedLeavesThePlaceInTheStream(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		refuse := []string{"create trigger refuse before insert on jobs begin select raise(abort, 'refused'); end"}
		if history.IsPostgres(s) {
			refuse = []string{"create function refuse() returns trigger language plpgsql as " +
				"'begin raise exception ''refused''; end'",
				"create trigger refuse before insert on jobs for each row execute function refuse()"}
		}
		err := history.Tx(t.Context(), s, func(tx *sql.Tx) error {
			for _, text := range refuse {
				if _, err := tx.ExecContext(t.Context(), text); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		j := job(taskID(1), "h1", jobs.Succeeded, time.Second)
		_, err = s.Put(t.Context(), history.Batch{Zone: "default", Last: "1-0", Ended: []api.PastJob{j}}, begin)
		if err == nil || !strings.Contains(err.Error(), "refused") {
			t.Fatalf("the batch was not refused: %v", err)
		}
		if p, err := s.Position(t.Context(), "default"); err != nil || p.Last != "" {
			t.Errorf("what was not stored is passed over: %+v, %v", p, err)
		}
	})
}

func TestSQLThatIsKilledInTheMiddleLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	cfg := p.Config(t)
	s := ready(t, cfg)
	const entries = 600
	reached := make(chan int, entries)
	var all sync.WaitGroup
	all.Go(func() {
		for at := range reached {
			if at%150 == 75 {
				p.Kill()
				if err := p.Start(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	failed := func() int {
		defer all.Wait()
		defer close(reached)
		return goOn(t, s, entries, func(n int) { reached <- n })
	}()
	if failed == 0 {
		t.Error("nothing failed: the server was not killed in the middle")
	}
	wantRows(t, s, entries)
}

func wantRows(t *testing.T, s *history.Store, entries int64) {
	t.Helper()
	rows, err := s.Rows(t.Context())
	if err != nil || rows["jobs"] != entries || rows["attempts"] != entries || rows["events"] != 2*entries {
		t.Errorf("rows %v (%v), want %d jobs and attempts, twice as many events", rows, err, entries)
	}
}

// A process that is killed while it writes the file, again and again.
func TestAWriterOfSQLiteThatIsKilledLosesAndDoublesNothing(t *testing.T) {
	if url := os.Getenv("HISTORY_TEST_WRITER"); url != "" {
		cfg := history.DefaultConfig()
		cfg.URL = url
		goOn(t, open(t, cfg), 1<<30, func(n int) { fmt.Println("stored", n) })
		return
	}
	t.Parallel()
	cfg := sqltest.SQLite(t)
	last := 0
	for range 5 {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = append(os.Environ(), "HISTORY_TEST_WRITER="+cfg.URL)
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		stop := last + 20 + rand.IntN(50)
		var said bytes.Buffer
		buf := make([]byte, 4096)
		for n := 0; n < stop; {
			k, err := out.Read(buf)
			if err != nil {
				t.Fatalf("the writer ended: %v: %s", err, said.String())
			}
			said.Write(buf[:k])
			if i := strings.LastIndex(said.String(), "stored "); i >= 0 {
				fmt.Sscanf(said.String()[i:], "stored %d\n", &n)
			}
		}
		last = stop
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait() // it was killed
	}
	s := ready(t, cfg)
	p, err := s.Position(t.Context(), "default")
	var n int64
	if fmt.Sscanf(p.Last, "%d-0", &n); err != nil || n < int64(last) {
		t.Fatalf("position %+v, %v: %d were said to be stored", p, err, last)
	}
	wantRows(t, s, n)
}

func TestAFullDiskIsSaidAndGoneOnFrom(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("a small disk is mounted by root only")
	}
	dir := t.TempDir()
	if err := syscall.Mount("muster-test", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	cfg := history.DefaultConfig()
	cfg.URL = "sqlite://" + filepath.Join(dir, "history.db")
	s := ready(t, cfg)
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	noise := rand.NewChaCha8([32]byte{})
	put := func(n int) error {
		p, err := s.Position(t.Context(), "default")
		if err != nil {
			return err
		}
		j := job(taskID(1), fmt.Sprintf("h%d", n), jobs.Succeeded, time.Second)
		data := make([]byte, 20<<10)
		noise.Read(data)
		_, err = s.Put(t.Context(), history.Batch{Zone: "default", After: p.Last, Last: fmt.Sprintf("%d-0", n),
			Ended: []api.PastJob{j}, Outputs: map[jobs.ID]jobs.Output{j.ID: {{Data: data}}}}, begin)
		return err
	}
	n, err := 0, error(nil)
	for ; err == nil && n < 1000; n++ {
		err = put(n + 1)
	}
	if err == nil || !strings.Contains(err.Error(), "history.db: store events:") ||
		!strings.Contains(err.Error(), "full") {
		t.Fatalf("after %d batches on a full disk: %v", n, err)
	}
	stored := int64(n - 1)
	rows, err := s.Rows(t.Context())
	if err != nil || rows["jobs"] != stored || rows["output"] != stored {
		t.Errorf("%v (%v), want %d jobs with their output", rows, err, stored)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := put(n); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

func TestHistoryThatIsAwaySaysWhere(t *testing.T) {
	t.Parallel()
	cfg := history.DefaultConfig()
	cfg.URL = "postgres://muster:secret@/x?host=" + t.TempDir()
	s := open(t, cfg)
	_, err := s.Position(t.Context(), "default")
	if err == nil || errors.Is(err, history.ErrNotFound) || !strings.Contains(err.Error(), "history postgresql ") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

func TestNobodyElseCanReadTheFile(t *testing.T) {
	t.Parallel()
	cfg := sqltest.SQLite(t)
	store(t, open(t, cfg), history.Batch{Ended: []api.PastJob{job(taskID(1), "h", jobs.Succeeded, 1)}})
	files, err := filepath.Glob(strings.TrimPrefix(cfg.URL, "sqlite://") + "*")
	if err != nil || len(files) < 3 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, name := range files {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

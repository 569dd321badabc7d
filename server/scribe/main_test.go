package scribe_test

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
	"muster/server/scribe"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// desk is a scribe with its ledger and a clock that the test moves.
type desk struct {
	*scribe.Scribe
	book *ledger.Ledger
	dir  string
	now  *atomic.Int64
}

func (d desk) pass(by time.Duration) { d.now.Add(int64(by)) }

func at(t testing.TB, cfg history.Config, dir string) desk {
	t.Helper()
	s := sqltest.Ready(t, cfg)
	d := desk{book: ledger.New(s), dir: dir, now: &atomic.Int64{}}
	d.now.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
	d.Scribe = scribe.New(scribe.Needs{Book: d.book, Dir: dir, Who: func() string { return "s1" },
		Log: hclog.NewNullLogger(), Now: func() time.Time { return time.Unix(0, d.now.Load()) },
		Patience: time.Hour})
	t.Cleanup(func() { d.Idle(t.Context()) })
	return d
}

func fresh(t testing.TB) desk { return at(t, sqltest.SQLite(t), filepath.Join(t.TempDir(), "audit")) }

func order(verb string) audit.Draft {
	return audit.Draft{Name: "os:alice", Entry: audit.Entry{Kind: audit.KindOrder, Verb: verb}}
}

// list returns the entries in their order, and examines them.
func (d desk) list(t testing.TB) []ledger.Row {
	t.Helper()
	if err := d.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := d.book.Page(t.Context(), ledger.Filter{EntriesMax: 100_000, Outcomes: true})
	if err != nil {
		t.Fatal(err)
	}
	x := audit.NewExaminer(audit.Keys{})
	if err := d.book.Each(t.Context(), 0, 0, func(r audit.Record) error {
		x.Entry(r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if r := x.Finish(audit.Header{Size: int64(len(list))}); !r.Whole() {
		t.Fatalf("the log is not whole: %+v", r)
	}
	out := make([]ledger.Row, len(list))
	for i, r := range list {
		out[len(list)-1-i] = r
	}
	return out
}

func verbs(list []ledger.Row) (out []string) {
	for _, r := range list {
		out = append(out, r.Verb+" "+r.Late)
	}
	return out
}

package ledger_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// both runs a test on a fresh SQLite and on a fresh database of PostgreSQL.
func both(t *testing.T, f func(t *testing.T, cfg history.Config)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); f(t, sqltest.SQLite(t)) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); f(t, sqltest.Shared(t).Config(t)) })
}

// ready is a ledger whose tables are there, with the handle of its database.
func ready(t testing.TB, cfg history.Config) (*ledger.Ledger, history.Handle) {
	t.Helper()
	s := sqltest.Ready(t, cfg)
	return ledger.New(s), history.HandleOf(s)
}

var begin = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func signer(t testing.TB) *audit.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("a test"))
	s, err := audit.NewSigner(audit.Origin("a-test"), ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keys(t testing.TB) audit.Keys {
	t.Helper()
	k, err := audit.ParseKeys([]string{signer(t).VerifierKey()})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func digest(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

// draft is an order of somebody; its name makes it different from others.
func draft(name, who, verb string) audit.Draft {
	return audit.Draft{Name: who, Salt: digest("salt" + name), NewName: digest("name" + name),
		Entry: audit.Entry{ID: digest(name)[:32], At: audit.TimeOf(begin), Kind: audit.KindOrder, Verb: verb,
			Object: "task/" + name, Proof: "socket"},
		Private: audit.Private{From: "10.1.2.3", Reason: "because of " + name}}.Cleaned()
}

func outcome(of audit.Draft) audit.Draft {
	d := draft("end of "+of.Entry.ID, of.Name, of.Entry.Verb)
	d.Entry.Kind, d.Private = audit.KindOutcome, audit.Private{}
	d.Entry.End = &audit.End{Of: of.Entry.ID, Result: audit.Done, Status: 200}
	return d
}

func add(t testing.TB, l *ledger.Ledger, list ...audit.Draft) {
	t.Helper()
	if err := l.Append(t.Context(), list, signer(t).Entry); err != nil {
		t.Fatal(err)
	}
}

// checkpoint signs the log as it is.
func checkpoint(t testing.TB, l *ledger.Ledger) string {
	t.Helper()
	size, err := l.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := audit.Root(size, l.Hashes(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	s := signer(t)
	at := begin.Add(time.Duration(size) * time.Second)
	note, err := s.Checkpoint(audit.Checkpoint{Origin: s.Origin(), Size: size, Root: root, At: audit.TimeOf(at)})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AddPoint(t.Context(), ledger.Point{Size: size, At: at, Note: note}); err != nil {
		t.Fatal(err)
	}
	return note
}

// examine reads the whole log, with checkpoints that somebody kept outside.
func examine(t testing.TB, l *ledger.Ledger, outside ...string) audit.Report {
	t.Helper()
	x := audit.NewExaminer(keys(t))
	if err := l.Points(t.Context(), -1, 0, func(p ledger.Point) error {
		x.Checkpoint(audit.FromTables, p.Note)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, note := range outside {
		x.Checkpoint("checkpoints.txt", note)
	}
	if err := l.Each(t.Context(), 0, 0, func(r audit.Record) error {
		x.Entry(r)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	size, err := l.Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := audit.Header{Size: size}
	if root, err := audit.Root(size, l.Hashes(t.Context())); err == nil {
		h.Root = root.String()
	}
	return x.Finish(h)
}

// run carries out statements as somebody does who can write to the database.
func run(t testing.TB, h history.Handle, statements ...string) {
	t.Helper()
	err := h.Tx(t.Context(), "test", func(tx *sql.Tx) error {
		for _, text := range statements {
			if _, err := tx.ExecContext(context.Background(), text); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// has reports whether a finding is in a report; of its words a part is enough.
func has(r audit.Report, want audit.Finding) bool {
	for _, f := range r.Findings {
		if f.Kind == want.Kind && f.First == want.First && f.Last == want.Last && strings.Contains(f.Words, want.Words) {
			return true
		}
	}
	return false
}

func found(kind string, first, last int64, words string) audit.Finding {
	return audit.Finding{Kind: kind, First: first, Last: last, Words: words}
}

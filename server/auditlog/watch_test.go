package auditlog_test

import (
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history/ledger"
	"muster/server/anchor"
	"muster/server/auditlog"
	"muster/server/scribe"
	"muster/testkit/sqltest"
)

// An entry has five minutes until its checkpoint is missed. The hours before it, in which nothing
// happened, do not count.
func TestACheckpointIsMissedByEntriesOnly(t *testing.T) {
	t.Parallel()
	store := sqltest.Ready(t, sqltest.SQLite(t))
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	signer, err := audit.NewSigner(audit.Origin("a-test"), ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	ring, err := audit.ParseKeys([]string{signer.VerifierKey()})
	if err != nil {
		t.Fatal(err)
	}
	log := auditlog.Log{Ledger: ledger.New(store),
		Keys: func() (*audit.Signer, audit.Keys, error) { return signer, ring, nil }}
	log.Scribe = scribe.New(scribe.Needs{Book: log.Ledger, Dir: t.TempDir(), Sign: signer.Entry,
		Who: func() string { return "s1" }, Log: hclog.NewNullLogger(), Now: clock, Patience: time.Hour})
	log.Anchor, err = anchor.New(anchor.Needs{Ledger: log.Ledger, Keys: log.Keys, Dir: t.TempDir(),
		Log: hclog.NewNullLogger(), Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	keep := func() {
		log.Scribe.Keep(audit.Draft{Name: "os:alice", Entry: audit.Entry{Kind: audit.KindNote, Verb: "halt"}})
		if err := log.Scribe.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	keep()
	if err := log.Anchor.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := auditlog.Watch{Log: log, Now: clock}
	for _, x := range []struct {
		what  string
		later time.Duration
		keep  bool
		want  string
	}{
		{"hours without an entry", 3 * time.Hour, false, ""},
		{"the first entry after them", 0, true, ""},
		{"four minutes later", 4 * time.Minute, true, ""},
		{"six minutes later", 2 * time.Minute, true, "no checkpoint since 6 minutes"},
	} {
		if now = now.Add(x.later); x.keep {
			keep()
		}
		if got := w.Words(t.Context()); got != x.want && (x.want == "" || !strings.Contains(got, x.want)) {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
	if err := log.Anchor.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.Words(t.Context()); got != "" {
		t.Errorf("after the checkpoint: %q", got)
	}
}

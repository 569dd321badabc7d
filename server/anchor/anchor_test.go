package anchor_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
	"muster/server/anchor"
	"muster/testkit/sqltest"
)

// bench is an anchor with its ledger and a clock that the test moves.
type bench struct {
	*anchor.Anchor
	t      *testing.T
	book   *ledger.Ledger
	handle history.Handle
	signer *audit.Signer
	now    time.Time
	made   int
}

func newBench(t *testing.T, c anchor.Config) *bench {
	t.Helper()
	s := sqltest.Ready(t, sqltest.SQLite(t))
	seed := sha256.Sum256([]byte("a test"))
	b := &bench{t: t, book: ledger.New(s), handle: history.HandleOf(s),
		now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	if b.signer, err = audit.NewSigner(audit.Origin("a-test"), ed25519.NewKeyFromSeed(seed[:])); err != nil {
		t.Fatal(err)
	}
	b.Anchor, err = anchor.New(anchor.Needs{Ledger: b.book, Config: c,
		Keys: func() (*audit.Signer, audit.Keys, error) { return b.signer, b.keys(), nil },
		Dir:  filepath.Join(t.TempDir(), "audit"), Host: "s1", Log: hclog.NewNullLogger(),
		Now: func() time.Time { return b.now }})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) keys() audit.Keys {
	k, err := audit.ParseKeys([]string{b.signer.VerifierKey()})
	if err != nil {
		b.t.Fatal(err)
	}
	return k
}

func digest(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func (b *bench) add(n int) {
	b.t.Helper()
	b.addSigned(n, b.signer.Entry)
}

func (b *bench) addSigned(n int, sign ledger.Sign) {
	b.t.Helper()
	var list []audit.Draft
	for range n {
		b.made++
		name := fmt.Sprint(b.made)
		list = append(list, audit.Draft{Name: "os:alice", Salt: digest("s" + name), NewName: digest("n" + name),
			Entry: audit.Entry{ID: digest(name)[:32], At: audit.TimeOf(b.now), Kind: audit.KindOrder, Verb: "halt"}}.Cleaned())
	}
	if err := b.book.Append(b.t.Context(), list, sign); err != nil {
		b.t.Fatal(err)
	}
}

// round does a round, and returns the sizes of all checkpoints.
func (b *bench) round() []int64 {
	b.t.Helper()
	if err := b.RunOnce(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	return b.points()
}

func (b *bench) points() (sizes []int64) {
	b.t.Helper()
	if err := b.book.Points(b.t.Context(), -1, 0, func(p ledger.Point) error {
		c, err := b.keys().Open(p.Note)
		if err != nil || c.Size != p.Size {
			b.t.Errorf("checkpoint of %d: %+v, %v", p.Size, c, err)
		}
		sizes = append(sizes, p.Size)
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	return sizes
}

func TestACheckpointIsSignedEachMinuteOrThousandEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t, anchor.Config{})
	want := func(what string, sizes ...int64) {
		t.Helper()
		if got := b.round(); fmt.Sprint(got) != fmt.Sprint(sizes) {
			t.Errorf("%s: %v, want %v", what, got, sizes)
		}
	}
	want("an empty log")
	b.add(3)
	want("the first entries", 3)
	b.add(1)
	want("an entry a moment later", 3)
	b.now = b.now.Add(time.Minute)
	want("a minute later", 3, 4)
	b.now = b.now.Add(time.Hour)
	want("an hour without entries", 3, 4)
	b.add(1)
	want("an entry then", 3, 4, 5)
	b.add(1000)
	want("a thousand entries at once", 3, 4, 5, 1005)
}

func TestNothingIsSignedThatWasNotSignedBefore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   []string
		more func(*bench)
		want string
	}{
		"cut off": {do: []string{"delete from audit_entries where seq >= 4", "update audit_tree set size = 4",
			fmt.Sprintf("delete from audit_hashes where place >= %d", audit.HashCount(4)),
			"delete from audit_checkpoints where size > 4"}, want: "has 4 entries, and"},
		"cut off and written on": {do: []string{"delete from audit_entries where seq >= 4", "update audit_tree set size = 4",
			fmt.Sprintf("delete from audit_hashes where place >= %d", audit.HashCount(4)),
			"delete from audit_checkpoints where size > 4"}, more: func(b *bench) { b.add(20) },
			want: "the first 8 entries of the audit log are others than those of the checkpoint in"},
		"a new entry changed": {more: func(b *bench) { b.add(2) },
			do:   []string{"update audit_entries set leaf = replace(leaf, 'halt', 'lift') where seq = 9"},
			want: "entry 9 of the audit log was changed or deleted"},
		"an entry that nobody signed": {more: func(b *bench) { b.addSigned(1, nil) },
			want: "no server of this key has signed entry 8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, anchor.Config{})
			b.add(4)
			b.round()
			b.now = b.now.Add(time.Minute)
			b.add(4)
			b.round()
			before := b.points()
			if c.more != nil && name != "cut off and written on" {
				c.more(b)
			}
			b.sql(c.do...)
			if name == "cut off and written on" {
				c.more(b)
			}
			b.now = b.now.Add(time.Minute)
			err := b.RunOnce(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(b.Trouble(), "muster audit verify") {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if got := b.points(); len(got) > len(before) {
				t.Errorf("it signed all the same: %v", got)
			}
		})
	}
}

func TestASinkThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "away")
	file := filepath.Join(folder, "audit.log")
	b := newBench(t, anchor.Config{Sinks: []string{"file:" + file + "#entries"}})
	b.add(700)
	if err := b.RunOnce(t.Context()); err == nil || !strings.Contains(err.Error(), file) {
		t.Fatalf("a folder that is not there: %v", err)
	}
	s := b.sink()
	if s.Trouble == "" || !s.Since.Equal(b.now) || s.Entries != 0 {
		t.Errorf("%+v", s)
	}
	b.add(300)
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := b.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := b.sink(); s.Entries != 0 {
		t.Errorf("it was tried again at once: %+v", s)
	}
	b.now = b.now.Add(10 * time.Minute)
	b.round()
	if s := b.sink(); s.Entries != 1000 || s.Checkpoints != 1000 || s.Trouble != "" || !s.Since.IsZero() {
		t.Errorf("%+v", s)
	}
	b.holds(file, 1000, 2)
}

func (b *bench) sink() ledger.Sent {
	b.t.Helper()
	list, err := b.book.Sinks(b.t.Context())
	if err != nil || len(list) != 1 {
		b.t.Fatal(list, err)
	}
	return list[0]
}

// holds reads a copy of the log, which must have all entries in their order and so many checkpoints.
func (b *bench) holds(file string, entries, points int) {
	b.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		b.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		l, err := audit.ParseLine([]byte(line))
		switch {
		case err != nil:
			b.t.Fatalf("%v: %.100s", err, line)
		case l.Entry != nil:
			if !b.keys().Signed([]byte(l.Entry.Leaf), l.Entry.Signature) {
				b.t.Fatalf("entry %d is not signed", l.Entry.Seq)
			}
			entries--
		default:
			if _, err := b.keys().Open(l.Checkpoint); err != nil {
				b.t.Fatal(err)
			}
			points--
		}
	}
	if entries != 0 || points != 0 {
		b.t.Errorf("%d entries and %d checkpoints are missing", entries, points)
	}
}

func TestALineThatACrashHasCutSpoilsNoOther(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(file, []byte(`{"checkpo`), 0o600); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, anchor.Config{Sinks: []string{"file:" + file}})
	b.add(1)
	b.round()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 2 || lines[0] != `{"checkpo` {
		t.Fatalf("%q", lines)
	}
	if l, err := audit.ParseLine([]byte(lines[1])); err != nil || l.Checkpoint == "" {
		t.Errorf("%v", err)
	}
}

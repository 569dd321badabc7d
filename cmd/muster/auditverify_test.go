package main

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history"
	"muster/history/ledger"
	"muster/internal/serverkey"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/server"
	"muster/server/anchor"
	"muster/server/auditlog"
	"muster/server/scribe"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// archived is a server with an audit log in a real database, and the file of a sink.
type archived struct {
	t      *testing.T
	url    string
	sql    history.Handle
	log    auditlog.Log
	file   string // that the sink writes
	keys   string // file with the public key
	signer *audit.Signer
}

func newArchived(t *testing.T, cfg history.Config) *archived {
	t.Helper()
	store := sqltest.Ready(t, cfg)
	dir, err := os.MkdirTemp("", "audit")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &archived{t: t, url: "unix:" + filepath.Join(dir, "s"), sql: history.HandleOf(store),
		file: filepath.Join(dir, "sink.log"), keys: filepath.Join(dir, "keys")}
	seed := sha256.Sum256([]byte("a test"))
	if w.signer, err = audit.NewSigner(audit.Origin("a-test"), ed25519.NewKeyFromSeed(seed[:])); err != nil {
		t.Fatal(err)
	}
	keys, err := audit.ParseKeys([]string{w.signer.VerifierKey()})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(w.keys, []byte(w.signer.VerifierKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.log = auditlog.Log{Ledger: ledger.New(store),
		Keys: func() (*audit.Signer, audit.Keys, error) { return w.signer, keys, nil }}
	w.log.Scribe = scribe.New(scribe.Needs{Book: w.log.Ledger, Dir: filepath.Join(dir, "audit"), Sign: signBy(w.log.Keys),
		Who: func() string { return "s1" }, Log: hclog.NewNullLogger(), Now: time.Now,
		Patience: time.Hour})
	// The test does the rounds of the duty, so that a checkpoint is where it wants one.
	w.log.Anchor, err = anchor.New(anchor.Needs{Ledger: w.log.Ledger, Keys: audit.NoKeys, Dir: dir,
		Log: hclog.NewNullLogger(), Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w.serve()
	return w
}

func (w *archived) serve() {
	w.t.Helper()
	_, redis := redistest.StartMini(w.t)
	q, err := queue.Open(w.t.Context(), redis)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { q.Close() })
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	srv, err := server.New(server.Config{Listen: w.url, Version: "1.2.3"}, server.Deps{Queue: stores(q, noKeys),
		Catalog: catalog, Log: hclog.NewNullLogger(), Audit: w.log})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- srv.Run(ctx) }()
	select {
	case err := <-ended:
		stop()
		w.t.Fatal(err)
	case <-srv.Ready():
	}
	w.t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			w.t.Error(err)
		}
	})
}

// orders gives a real order, and then fills the log up to a size, with a checkpoint in the tables and
// in the file behind every fifty.
func (w *archived) orders(upTo int64) {
	w.t.Helper()
	if code, _, words := muster(w.t, w.url, "halt", "--reason", "a fire"); code != 0 {
		w.t.Fatal(words)
	}
	size := w.size()
	for {
		w.checkpoint(size)
		if size >= upTo {
			return
		}
		want := min(size+50, upTo)
		for range want - size {
			w.log.Scribe.Keep(audit.Draft{Name: fmt.Sprint("os:u", size%3), Private: audit.Private{Reason: "a test"},
				Entry: audit.Entry{Kind: audit.KindNote, Verb: "task.submit", Object: fmt.Sprint("task/", size)}})
		}
		// A database that was away for a moment gets the entries later.
		for size = w.size(); size < want; size = w.size() {
			if err := w.log.Scribe.Tend(w.t.Context()); err != nil {
				w.t.Log(err)
			}
		}
	}
}

// size returns the number of entries in the database, once the scribe has stored what it could.
func (w *archived) size() int64 {
	w.t.Helper()
	if err := w.log.Scribe.Idle(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	size, err := w.log.Ledger.Size(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return size
}

func (w *archived) checkpoint(size int64) {
	w.t.Helper()
	root, err := audit.Root(size, w.log.Ledger.Hashes(w.t.Context()))
	if err != nil {
		w.t.Fatal(err)
	}
	note, err := w.signer.Checkpoint(audit.Checkpoint{Origin: w.signer.Origin(), Size: size, Root: root,
		At: audit.TimeOf(time.Now())})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.log.Ledger.AddPoint(w.t.Context(), ledger.Point{Size: size, At: time.Now(), Note: note}); err != nil {
		w.t.Fatal(err)
	}
	line, err := json.Marshal(audit.Line{Checkpoint: note})
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := os.OpenFile(w.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(line, '\n')); err != nil {
		w.t.Fatal(err)
	}
}

// tamper carries out statements as somebody does who can write to the database.
func (w *archived) tamper(statements ...string) {
	w.t.Helper()
	for _, text := range statements {
		if err := w.sql.Exec(w.t.Context(), "a test", history.Statement{Text: text}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// verify examines the log by the command line.
func (w *archived) verify(more ...string) (code int, out string) {
	w.t.Helper()
	code, out, words := muster(w.t, w.url, append([]string{"audit", "verify", "--key", w.keys, "--checkpoint", w.file},
		more...)...)
	return code, out + words
}

var auditTables = []string{"audit_tree", "audit_entries", "audit_hashes", "audit_names", "audit_checkpoints"}

// noKeys is the reader of a server without a key.
func noKeys() (serverkey.Keys, error) { return serverkey.Keys{}, nil }

// The show: somebody with all rights in the database does each of these, and the command names it.
func TestMusterAuditVerifyNamesWhatSQLHasDone(t *testing.T) {
	t.Parallel()
	var backup, restore []string
	for _, name := range auditTables {
		backup = append(backup, "create table saved_"+name+" as select * from "+name)
		restore = append(restore, "delete from "+name, "insert into "+name+" select * from saved_"+name)
	}
	cut := []string{"delete from audit_entries where seq >= 100", "update audit_tree set size = 100",
		fmt.Sprintf("delete from audit_hashes where place >= %d", audit.HashCount(100)),
		"delete from audit_checkpoints where size > 100"}
	for name, c := range map[string]struct {
		before, do []string // before: after the first hundred entries
		want       string
	}{
		"a row changed": {do: []string{"update audit_entries set leaf = replace(leaf, 'a', 'b') where seq = 117"},
			want: "CHANGED: entry 117 was changed"},
		"a row deleted": {do: []string{"delete from audit_entries where seq = 42"},
			want: "DELETED: entry 42 is missing: it was deleted"},
		"a row inserted": {do: []string{`insert into audit_entries (seq, id, leaf, signature, at, who, verb, object,
			ends, salt, origin, reason) select 200, 'ffffffffffffffffffffffffffffffff', replace(leaf, '"seq":150,', '"seq":200,'),
			signature, at, who, verb, object, ends, salt, origin, reason from audit_entries where seq = 150`},
			want: "INSERTED: entry 200 was inserted"},
		"the newest hundred cut off": {do: cut[:3], want: "CUT: the newest entries, 100 to 199 (100 of them), are missing"},
		"with their checkpoints": {do: cut,
			want: "RESTORED: the tables end at entry 99, and FILE has a checkpoint of 200 entries"},
		"tables of yesterday": {before: backup, do: restore,
			want: "RESTORED: the tables end at entry 99, and FILE has a checkpoint of 200 entries, signed at "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for base, cfg := range map[string]func(testing.TB) history.Config{"sqlite": sqltest.SQLite,
				"postgres": func(t testing.TB) history.Config { return sqltest.StartPostgres(t).Config(t) }} {
				w := newArchived(t, cfg(t))
				w.orders(100)
				w.tamper(c.before...)
				w.orders(200)
				if code, out := w.verify(); code != 0 || !strings.Contains(out, "the log is whole") {
					t.Fatalf("%s: before: %d %s", base, code, out)
				}
				w.tamper(c.do...)
				code, out := w.verify()
				if want := strings.ReplaceAll(c.want, "FILE", w.file); code != 1 || !strings.Contains(out, want) {
					t.Errorf("%s: %d %s, want %s", base, code, out, want)
				}
			}
		})
	}
}

func TestMusterAuditShowsProvesAndExports(t *testing.T) {
	t.Parallel()
	w := newArchived(t, sqltest.SQLite(t))
	w.orders(60)
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		code, out, words := muster(t, w.url, args...)
		if code != 0 {
			t.Fatalf("%q: %d %s", args, code, words)
		}
		return out
	}
	keep := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	list := run("audit", "ls", "--verb", "halt")
	if !strings.Contains(list, "a fire") || !strings.Contains(list, "done") || !strings.Contains(list, "socket") {
		t.Errorf("ls: %s", list)
	}
	seq := strings.Fields(strings.Split(list, "\n")[1])[0]
	if out := run("audit", "show", seq); !strings.Contains(out, "halt") || !strings.Contains(out, "a fire") {
		t.Errorf("show: %s", out)
	}
	proof := keep("proof.json", run("audit", "prove", seq))
	out := run("audit", "prove", "--check", proof, "--key", w.keys)
	if !strings.Contains(out, "the proof holds: entry "+seq) {
		t.Errorf("check: %s", out)
	}
	other := keep("other.json", strings.Replace(readFile(t, proof), "halt", "lift", 1))
	if code, _, words := muster(t, w.url, "audit", "prove", "--check", other, "--key", w.keys); code != 1 ||
		!strings.Contains(words, "does not hold") {
		t.Errorf("a proof that was changed: %d %s", code, words)
	}
	grown := keep("grown.json", run("audit", "prove", "--since", w.file))
	out = run("audit", "prove", "--check", grown, "--key", w.keys)
	if !strings.Contains(out, "the proof holds: the log of") {
		t.Errorf("check: %s", out)
	}
	export := keep("log.jsonl", run("audit", "export"))
	out = run("audit", "verify", export, "--key", w.keys, "--checkpoint", w.file)
	if !strings.Contains(out, "the log is whole") {
		t.Errorf("verify: %s", out)
	}
	half := keep("half.jsonl", readFile(t, export)[:2000])
	if code, _, words := muster(t, w.url, "audit", "verify", half, "--key", w.keys); code == 0 {
		t.Errorf("half an export: %s", words)
	}
	if out := run("audit", "status"); !strings.Contains(out, w.signer.VerifierKey()) {
		t.Errorf("status: %s", out)
	}
	run("audit", "erase", "os:u1", "--reason", "asked by letter")
	out = run("audit", "ls", "--limit", "500", "--all")
	if strings.Contains(out, "os:u1") || !strings.Contains(out, "(erased)") {
		t.Errorf("after the erasure: %s", out)
	}
	if err := w.log.Scribe.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, out := w.verify(); code != 0 || !strings.Contains(out, "1 name erased, as the log says") {
		t.Errorf("verify: %d %s", code, out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMusterAuditRefusesWrongUseInWords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"audit", "show", "x"}, "want the number of an entry"},
		{[]string{"audit", "prove"}, "want one of"},
		{[]string{"audit", "prove", "1", "--since", "x"}, "want one of"},
		{[]string{"audit", "erase"}, "want a principal, or --entry"},
		{[]string{"audit", "erase", "os:a"}, "--reason is needed"},
		{[]string{"audit", "ls", "--limit", "0", "--from", "yesterday", "--before", "-1"}, "--limit 0"},
		{[]string{"audit", "verify", filepath.Join(t.TempDir(), "none")}, "no such file"},
	} {
		code, _, words := muster(t, "unix:/nowhere/s", c.args...)
		if code != 2 || !strings.Contains(words, c.want) {
			t.Errorf("%q: %d %s, want %s", c.args, code, words, c.want)
		}
		if slices.Contains(c.args, "yesterday") &&
			!(strings.Contains(words, "--from") && strings.Contains(words, "--before")) {
			t.Errorf("%q: not all mistakes: %s", c.args, words)
		}
	}
}

// The program of docs/AUDIT.md shares no line with muster.
func TestTheProgramForAuditorsFindsTheSame(t *testing.T) {
	t.Parallel()
	page := readFile(t, "../../docs/AUDIT.md")
	_, program, found := strings.Cut(page, "```python\n")
	program, _, closed := strings.Cut(program, "\n```")
	if !found || !closed {
		t.Fatal("docs/AUDIT.md has no program")
	}
	w := newArchived(t, sqltest.SQLite(t))
	w.orders(60)
	run := func() (string, error) {
		t.Helper()
		code, out, words := muster(t, w.url, "audit", "export")
		if code != 0 {
			t.Fatal(words)
		}
		path := filepath.Join(t.TempDir(), "log.jsonl")
		if err := os.WriteFile(path, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		text, err := exec.CommandContext(t.Context(), "python3", "-c", program, path, w.keys).CombinedOutput()
		return string(text), err
	}
	out, err := run()
	if err != nil || !strings.Contains(out, "60 entries") || !strings.Contains(out, "the log is whole") {
		t.Fatalf("%s, %v", out, err)
	}
	w.tamper("update audit_entries set leaf = replace(leaf, 'task/', 'host/') where seq = 31")
	if out, err := run(); err == nil {
		t.Errorf("a row changed: %s", out)
	}
	w.tamper("delete from audit_entries where seq = 31")
	if out, err := run(); err == nil {
		t.Errorf("a row deleted: %s", out)
	}
}

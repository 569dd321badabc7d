package server_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/audit"
	"muster/history"
	"muster/history/ledger"
	"muster/server"
	"muster/server/anchor"
	"muster/server/auditlog"
	"muster/server/scribe"
	"muster/testkit/sqltest"
)

// archive is the audit log of a server under test.
type archive struct {
	*scribe.Scribe
	book   *ledger.Ledger
	anchor *anchor.Anchor // whose rounds the test does
	idle   *anchor.Anchor // of the server: it signs nothing and has no sinks
	keys   audit.Keyring
}

func newArchive(t *testing.T, cfg history.Config, dir string) archive {
	t.Helper()
	s := sqltest.Ready(t, cfg)
	var err error
	a := archive{book: ledger.New(s), keys: keyring25519(t)}
	a.anchor, err = anchor.New(anchor.Needs{Ledger: a.book, Keys: a.keys, Dir: dir, Log: hclog.NewNullLogger(),
		Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	a.idle, err = anchor.New(anchor.Needs{Ledger: a.book, Keys: audit.NoKeys, Dir: dir, Log: hclog.NewNullLogger(),
		Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	signer, _, _ := a.keys()
	a.Scribe = scribe.New(scribe.Needs{Book: a.book, Dir: dir, Sign: signer.Entry, Who: func() string { return "s1" },
		Log: hclog.NewNullLogger(), Now: time.Now, Patience: time.Hour})
	t.Cleanup(func() { a.Idle(context.Background()) })
	return a
}

// keyring25519 has a key of a test.
func keyring25519(t *testing.T) audit.Keyring {
	t.Helper()
	seed := sha256.Sum256([]byte("a test"))
	signer, err := audit.NewSigner(audit.Origin("a-test"), ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := audit.ParseKeys([]string{signer.VerifierKey()})
	if err != nil {
		t.Fatal(err)
	}
	return func() (*audit.Signer, audit.Keys, error) { return signer, keys, nil }
}

func audited(t *testing.T) archive {
	return newArchive(t, sqltest.SQLite(t), filepath.Join(t.TempDir(), "audit"))
}

// write makes it the log of a server.
func (a archive) write(d *server.Deps) {
	d.Audit = auditlog.Log{Ledger: a.book, Scribe: a.Scribe, Anchor: a.idle, Keys: a.keys}
}

// entries returns the newest entries, the newest first.
func (a archive) entries(t *testing.T) []ledger.Row {
	t.Helper()
	if err := a.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := a.book.Page(t.Context(), ledger.Filter{EntriesMax: 1000, Outcomes: true})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// The test walks the OpenAPI document: a route without a rule, or whose request leaves no entry,
// fails it.
func TestEveryRouteThatChangesSomethingWritesAnEntry(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write, strict: true})
	var d document
	w.call("GET", "/openapi.json", nil, &d)
	for path, methods := range d.Paths {
		for method := range methods {
			if method = strings.ToUpper(method); !scribe.Known(method, path) {
				t.Errorf("%s %s: no rule says what the audit log has of it: add a row to server/scribe/rules.go",
					method, path)
			}
		}
	}
	asks := map[string]bool{"POST /v1/plan": true, "POST /v1/hosts/query": true,
		"POST /v1/triggers/test": true}
	for _, route := range w.routes() {
		method, path, _ := strings.Cut(route, " ")
		if method == "GET" || asks[route] {
			continue
		}
		before := len(a.entries(t))
		w.raw(method, path, map[string]any{"reason": "a walk over all routes"}, nil)
		list := a.entries(t)
		if len(list) == before {
			t.Errorf("%s: no entry", route)
			continue
		}
		for _, e := range list[:len(list)-before] {
			if e.Who == "" || e.Proof != "socket" || e.Kind == audit.KindOrder && e.Ended == nil {
				t.Errorf("%s: %+v, ended %+v", route, e.Entry, e.Ended)
			}
		}
	}
}

func TestATaskIsInTheAuditLogBeforeItRuns(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	var task api.Submitted
	res := w.call("POST", "/v1/tasks", map[string]any{"runbook": "label", "on": "fw001",
		"args": map[string]any{"word": "tango"}}, &task)
	if res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status)
	}
	var found ledger.Row
	for _, e := range a.entries(t) {
		if e.Object == "task/"+string(task.Task) && e.Kind == audit.KindOrder {
			found = e
		}
	}
	if found.Verb != "task.submit" || found.Task == nil || found.Task.Hosts != task.Total ||
		found.Task.Runbook != "label" ||
		found.Task.RunbookHash == "" || found.Task.Order == "" ||
		found.Ended == nil || found.Ended.Result != audit.Done {
		t.Fatalf("%+v %+v", found, found.Task)
	}
	if found.Record.Person == nil || found.Record.Person.Name != task.Operator || found.Proof != "claimed" {
		t.Errorf("by %+v", found.Record.Person)
	}
}

// The database is away, and the folder of the spool is a file.
func TestAnOrderThatCannotBeWrittenDownIsRefusedAndStopsWork(t *testing.T) {
	t.Parallel()
	p := sqltest.StartPostgres(t)
	dir := filepath.Join(t.TempDir(), "audit")
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	a := newArchive(t, p.Config(t), dir)
	w := start(t, setup{more: a.write})
	if err := a.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	for _, path := range []string{"/v1/tasks", "/v1/lift", "/v1/zones/default/resume", "/v1/tokens"} {
		res, text := w.raw("POST", path, map[string]any{"runbook": "label", "on": "fw001", "name": "t1"}, nil)
		switch path {
		case "/v1/tokens":
			res, text = w.raw("POST", path, map[string]any{"name": "t1"}, nil)
		case "/v1/tasks":
			res, text = w.raw("POST", path, map[string]any{"runbook": "label", "on": "fw001",
				"args": map[string]any{"word": "tango"}}, nil)
		}
		if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "audit log") {
			t.Errorf("%s: %s %s", path, res.Status, text)
		}
	}
	for _, path := range []string{"/v1/zones/default/pause", "/v1/halt"} {
		if res, text := w.raw("POST", path, map[string]any{"reason": "stop"}, nil); res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s %s", path, res.Status, text)
		}
	}
	var list api.TokenList
	w.call("GET", "/v1/tokens", nil, &list)
	if len(list.Tokens) != 0 {
		t.Errorf("a token was made without an entry: %+v", list)
	}
}

func TestARefusedLoginIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	res, _ := w.raw("POST", "/v1/halt", nil, http.Header{"Authorization": {"Bearer muster_nobody"}})
	if res.StatusCode != http.StatusUnauthorized {
		t.Fatal(res.Status)
	}
	e := a.entries(t)[0]
	if e.Kind != audit.KindRefused || e.Verb != "login" || e.Object != "login/unknown_token" ||
		e.Record.Private.From == "" {
		t.Errorf("%+v", e)
	}
}

func TestAnInventoryIsInTheAuditLogBeforeItIsInForce(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	var found bool
	for _, e := range a.entries(t) {
		found = found || e.Verb == "inventory.publish" && e.Kind == audit.KindNote && e.Task.Hosts > 0 &&
			e.Object == "inventory/"+w.server.Stock().Now().Version
	}
	if !found {
		t.Errorf("%+v", a.entries(t))
	}
}

package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/audit"
	"muster/history/ledger"
	"muster/server/anchor"
)

// pauses gives some orders, signs a checkpoint, and gives one more.
func (a archive) pauses(t *testing.T, w *world) {
	t.Helper()
	for i := range 3 {
		w.raw("POST", "/v1/zones/default/pause", map[string]any{"reason": fmt.Sprint("reason ", i)}, nil)
		w.raw("POST", "/v1/zones/default/resume", nil, nil)
	}
	if err := a.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.anchor.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheAuditLogIsShown(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	a.pauses(t, w)
	var page api.AuditPage
	w.call("GET", "/v1/audit?verb=zone.*&limit=4", nil, &page)
	if len(page.Entries) != 4 || page.Next == 0 || page.Entries[0].Verb != "zone.resume" ||
		page.Entries[1].Said.Reason != "reason 2" || page.Entries[1].Ended == nil || page.Entries[1].Ended.Status != 200 {
		t.Fatalf("%+v", page)
	}
	var more api.AuditPage
	w.call("GET", fmt.Sprintf("/v1/audit?verb=zone.*&limit=4&before=%d", page.Next), nil, &more)
	if len(more.Entries) != 2 || more.Next != 0 {
		t.Fatalf("%+v", more)
	}
	seq := page.Entries[1].Seq
	var one api.AuditDetail
	w.call("GET", fmt.Sprintf("/v1/audit/entries/%d", seq), nil, &one)
	if one.Object != "zone/default" || one.Record.Leaf == "" || one.Record.Signature == "" {
		t.Errorf("%+v", one)
	}
	_, keys, _ := a.keys()
	var proof audit.Proof
	w.call("GET", fmt.Sprintf("/v1/audit/entries/%d/proof", seq), nil, &proof)
	if e, _, err := proof.Check(keys); err != nil || e.Seq != seq {
		t.Errorf("the proof does not hold: %v", err)
	}
	if res, _ := w.raw("GET", "/v1/audit/entries/9999/proof", nil, nil); res.StatusCode != http.StatusNotFound {
		t.Errorf("a proof of nothing: %s", res.Status)
	}
	var st api.AuditState
	w.call("GET", "/v1/audit/state", nil, &st)
	if st.Signed == 0 || st.Entries < st.Signed || len(st.Keys) != 1 || st.Trouble != "" {
		t.Errorf("%+v", st)
	}
}

func TestALogThatGrowsProvesIt(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	a.pauses(t, w)
	older, err := a.book.NewestPoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var g audit.Growing
	w.call("GET", fmt.Sprintf("/v1/audit/growth?from=%d", older.Size), nil, &g)
	g.Older = older.Note
	_, keys, _ := a.keys()
	if _, _, err := g.Check(keys); err != nil {
		t.Error(err)
	}
	if res, text := w.raw("GET", "/v1/audit/growth?from=99999", nil, nil); res.StatusCode != http.StatusConflict ||
		!strings.Contains(string(text), "restored from an older copy") {
		t.Errorf("%s %s", res.Status, text)
	}
}

// examined reads the export of a server, as the command line does.
func (w *world) examined(keys audit.Keys) audit.Report {
	w.t.Helper()
	_, text := w.raw("GET", "/v1/audit/export", nil, nil)
	x := audit.NewExaminer(keys)
	var h *audit.Header
	var end *audit.Tail
	for line := range bytes.Lines(text) {
		l, err := audit.ParseLine(line)
		switch {
		case err != nil:
			w.t.Fatal(err)
		case l.Log != nil:
			h = l.Log
		case l.Checkpoint != "":
			x.Checkpoint(audit.FromTables, l.Checkpoint)
		case l.Entry != nil:
			x.Entry(*l.Entry)
		default:
			end = l.End
		}
	}
	if h == nil || end == nil || end.Entries == 0 {
		w.t.Fatalf("it begins with %+v and ends with %+v", h, end)
	}
	return x.Finish(*h)
}

func TestAnExportCanBeExamined(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	a.pauses(t, w)
	_, keys, _ := a.keys()
	if r := w.examined(keys); !r.Whole() || r.Checkpoints != 1 || r.Entries < 12 {
		t.Errorf("%+v", r)
	}
}

func TestANameIsErasedAndTheLogSaysSo(t *testing.T) {
	t.Parallel()
	a := audited(t)
	w := start(t, setup{more: a.write})
	a.pauses(t, w)
	for _, bad := range []map[string]any{{"reason": "x"}, {"name": "alice"}, {"name": "a", "entry": 1, "reason": "x"}} {
		if res, _ := w.raw("POST", "/v1/audit/erase", bad, nil); res.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%v: %s", bad, res.Status)
		}
	}
	var done api.AuditErased
	res := w.call("POST", "/v1/audit/erase", map[string]any{"name": "alice", "reason": "asked by letter"}, &done)
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(done.Object, "person/") {
		t.Fatal(res.Status, done)
	}
	if err := a.Idle(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, keys, _ := a.keys()
	if r := w.examined(keys); !r.Whole() || r.Erased != 1 {
		t.Errorf("%+v", r)
	}
	_, text := w.raw("GET", "/v1/audit?limit=500&verb=zone.*", nil, nil)
	if strings.Contains(string(text), "alice") || strings.Contains(string(text), "reason 1") {
		t.Errorf("it is still there: %s", text)
	}
	res, _ = w.raw("POST", "/v1/audit/erase", map[string]any{"name": "nobody", "reason": "x"}, nil)
	if res.StatusCode != http.StatusNotFound {
		t.Errorf("somebody who is not there: %s", res.Status)
	}
}

// A sink is away for longer than health allows.
func TestHealthAndMetricsSayThatASinkLags(t *testing.T) {
	t.Parallel()
	a := audited(t)
	sink := "file:" + filepath.Join(t.TempDir(), "audit.log")
	var err error
	// Without a key it has nothing to send, so what the test writes about the sink stays.
	a.idle, err = anchor.New(anchor.Needs{Ledger: a.book, Keys: audit.NoKeys, Dir: t.TempDir(),
		Log: hclog.NewNullLogger(), Config: anchor.Config{Sinks: []string{sink}}, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, setup{more: a.write})
	for _, name := range []string{sink, "file:/of/an/earlier/configuration"} {
		if err := a.book.SaveSent(t.Context(), ledger.Sent{Sink: name, Since: time.Now().Add(-time.Hour),
			Trouble: "no space left on device"}); err != nil {
			t.Fatal(err)
		}
	}
	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	if !strings.Contains(h.Status, "sink "+sink+" of the audit log takes nothing since 60 minutes") {
		t.Errorf("health: %s", h.Status)
	}
	if strings.Contains(h.Status, "earlier") {
		t.Errorf("health complains of a sink that is none any more: %s", h.Status)
	}
	_, text := w.raw("GET", "/metrics", nil, nil)
	for _, name := range []string{"muster_audit_entries ", "muster_audit_away 0",
		"muster_audit_sink_lag_seconds{sink=", "muster_audit_signed_entries"} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("no %s in the metrics", name)
		}
	}
}

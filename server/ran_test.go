package server_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/api"
	"muster/history"
	"muster/jobs"
	"muster/scripts"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

const withAll = `
name: deploy
version: "7b"
arguments:
  word: {type: string}
  rules: {type: file}
  password: {type: secret, max_length: 30}
steps:
  - {name: bring, upload: {from: rules, to: /tmp/rules}}
  - {name: use, run: "echo {{word}}; printf %s {{password}}"}
`

// everyView are the answers in which a task is shown, by what is asked.
func (w *world) everyView(id jobs.TaskID) map[string]string {
	w.t.Helper()
	out := map[string]string{"the log": w.log.String()}
	for _, path := range []string{"/v1/tasks", "/v1/tasks/" + string(id), "/v1/tasks/" + string(id) + "/summary",
		"/v1/tasks/" + string(id) + "/report", "/v1/jobs/" + string(id) + ":fw001", "/v1/history",
		"/v1/history/export", "/v1/history/events?of=" + string(id)} {
		res, text := w.raw("GET", path, nil, nil)
		if res.StatusCode != http.StatusOK {
			w.t.Errorf("%s: %s %s", path, res.Status, text)
		}
		out[path] = string(text)
	}
	return out
}

// sealedIn is the cipher text of the secret of a task.
func (w *world) sealedIn(id jobs.TaskID) string {
	w.t.Helper()
	spec, err := w.queue.Spec(w.t.Context(), id)
	var f scripts.Frozen
	if err != nil || f.UnmarshalJSON(spec.Action) != nil || f.Values.Secrets["password"] == "" {
		w.t.Fatalf("spec %s, %v", spec.Action, err)
	}
	return f.Values.Secrets["password"]
}

func TestWhatRanIsInEveryViewAndNoSecretIs(t *testing.T) {
	t.Parallel()
	cfg := sqltest.SQLite(t)
	redis := redistest.StartServer(t, smallNodes...).Config()
	store := openHistory(t, cfg)
	w := start(t, setup{redis: &redis, history: store, runbooks: []string{withAll}, more: sealing(keyring(1))})
	big := "rule-canary " + strings.Repeat("x", 1<<20-12)
	id := w.submit(api.Submit{Runbook: "deploy", On: "fw001", Args: map[string]string{"word": "word-canary"},
		Files: map[string][]byte{"rules": []byte(big)}, Secrets: map[string]string{"password": swordfish}}).Task
	w.work("default", succeed)
	waitFor(t, "the end in history", func() bool {
		task, err := store.Task(t.Context(), id)
		return err == nil && task.State == jobs.TaskEnded && task.Outcomes.Sum() == 1
	})

	var task jobs.TaskInfo
	w.call("GET", "/v1/tasks/"+string(id), nil, &task)
	if r := task.Ran; r == nil || r.Version != "7b" || len(r.SHA256) != 64 || len(r.Arguments) != 3 ||
		!r.Arguments[0].Secret || r.Arguments[1].Bytes != 1<<20 || r.Arguments[1].SHA256 != sumOf(big) ||
		r.Arguments[2].Value != "word-canary" {
		t.Fatalf("what ran: %+v", r)
	}
	sealed := w.sealedIn(id)
	for what, text := range w.everyView(id) {
		for _, part := range []string{"word-canary", task.Ran.SHA256, "alice", sumOf(big)} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %s", what, part)
			}
		}
		noSecret(t, what, []byte(text), sealed)
		if len(text) > 64<<10 {
			t.Errorf("%s has %d bytes, so a file of a megabyte is in it", what, len(text))
		}
	}
	wantSmallRows(t, cfg, store, id, sealed)
}

// noSecret looks for the secret as it is, as JSON has bytes, and sealed.
func noSecret(t *testing.T, what string, text []byte, sealed string) {
	t.Helper()
	for _, part := range []string{swordfish, base64.StdEncoding.EncodeToString([]byte(swordfish)), sealed} {
		if bytes.Contains(text, []byte(part)) {
			t.Errorf("%s has the secret: %q", what, part)
		}
	}
}

// wantSmallRows looks at the files of SQLite.
func wantSmallRows(t *testing.T, cfg history.Config, store *history.Store, id jobs.TaskID, sealed string) {
	t.Helper()
	kept, err := store.Task(t.Context(), id)
	text, _ := json.Marshal(kept)
	if err != nil || len(text) > 32<<10 || !bytes.Contains(text, []byte("word-canary")) {
		t.Errorf("history keeps %d bytes of the task, %v", len(text), err)
	}
	files, err := filepath.Glob(strings.TrimPrefix(cfg.URL, "sqlite://") + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		noSecret(t, file, data, sealed)
	}
}

func TestARetrySaysWhatItRuns(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	id := w.submit(run("fw001")).Task
	w.work("default", func(string) jobs.Result {
		return jobs.Result{Outcome: jobs.Failed, Class: jobs.ClassUser, ExitCode: new(int)}
	})
	code, again := w.retry(id, api.RetryRequest{OrderRequest: why("once more")})
	if code != http.StatusCreated || again.Ran == nil || again.Ran.Text() != "cmd=true" || again.Reason != "once more" {
		t.Errorf("%d %+v", code, again)
	}
	wantParts(t, w.log.String(), "task retried", "arguments=cmd=true", "operator=alice", `reason="once more"`)
}

// wantParts looks for words in a log.
func wantParts(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("the log has no %q: %s", part, text)
		}
	}
}

func TestTheLogSaysWhoMadeAndRemovedAToken(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	var made api.TokenAnswer
	w.call("POST", "/v1/tokens", api.TokenRequest{Name: "ci"}, &made)
	w.raw("DELETE", "/v1/tokens/ci", nil, http.Header{api.UserHeader: {"mallory fake"}})
	w.raw("POST", "/v1/tokens", api.TokenRequest{Name: "next"}, bearing(w.token("ops")))
	wantParts(t, w.log.String(), "token created: id="+made.ID+" name=ci owner="+localName(t)+" expires=",
		"token removed: id="+made.ID+" name=ci owner=", " name=next owner=user:ops expires=",
		" operator=user:ops proven=true")
	if strings.Contains(w.log.String(), "operator=mallory ") {
		t.Error("a name that no operator may have is logged as one")
	}
}

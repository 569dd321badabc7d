package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/notify"
	"muster/server"
	"muster/testkit/sqltest"
)

// hooked is a server that tells a webhook of the ends of tasks, and returns the bodies that it got.
func hooked(t *testing.T) (*world, chan string) {
	t.Helper()
	got := make(chan string, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Webhook-Id")
	}))
	t.Cleanup(srv.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("a key of sixteen bytes or more"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := notify.Parse(fleet.Source{Name: "n", Data: []byte(fmt.Sprintf(`
receivers:
  desk: {webhook: {url: "%s/T0SECRET", key_file: %s}}
rules:
  - {name: ends, what: task-ended, to: desk}
  - {name: frozen, what: [group-frozen], to: desk}
`, srv.URL, key))})
	if err != nil {
		t.Fatal(err)
	}
	policy := policyOf(t, rolesPolicy())
	return start(t, setup{inventory: fixed(twoCustomers()), history: openHistory(t, sqltest.SQLite(t)),
		more: func(d *server.Deps) {
			d.Policy, d.Notify = policy, func() (*notify.Rules, error) { return rules, nil }
		}}), got
}

// Somebody who may see the hosts of acme sees the messages that concern only tasks there.
func TestMessagesAreShownToThoseWhoSeeTheirTasks(t *testing.T) {
	t.Parallel()
	w, got := hooked(t)
	tasks := map[string]jobs.TaskID{}
	for name, on := range map[string]string{"acme": "fw-a1", "bolt": "fw-b1", "both": "fw-a2,fw-b2"} {
		tasks[name] = w.submit(run(on)).Task
	}
	w.work("default", succeed)
	for range tasks {
		<-got
	}
	var all, own api.MessageList
	admin := w.token("admin")
	waitFor(t, "three messages that are delivered", func() bool {
		w.callAs("GET", "/v1/notify/messages?state=delivered", admin, &all)
		return len(all.Messages) == 3
	})
	operator := w.token("operator-acme")
	w.callAs("GET", "/v1/notify/messages?limit=1", operator, &own)
	if len(own.Messages) != 1 || !strings.Contains(own.Messages[0].Title, string(tasks["acme"])) {
		t.Errorf("%+v", own)
	}
	for _, m := range all.Messages {
		want := http.StatusNotFound
		if strings.Contains(m.Title, string(tasks["acme"])) {
			want = http.StatusOK
		}
		if got := w.status("GET", "/v1/notify/messages/"+m.ID, operator); got != want {
			t.Errorf("%s: %d, want %d", m.Title, got, want)
		}
	}
	if got := w.status("POST", "/v1/notify/receivers/desk/test", operator); got != http.StatusForbidden {
		t.Errorf("an operator of acme tries a receiver: %d", got)
	}
}

func TestAReceiverIsTriedAndNoURLIsShown(t *testing.T) {
	t.Parallel()
	w, got := hooked(t)
	admin := w.token("admin")
	var m api.Message
	w.callAs("POST", "/v1/notify/receivers/desk/test", admin, &m)
	if id := <-got; id != m.ID || m.State != "waiting" {
		t.Errorf("%s came, %+v was ordered", id, m)
	}
	var r api.NotifyReceivers
	waitFor(t, "the message is delivered", func() bool {
		w.callAs("GET", "/v1/notify/receivers", admin, &r)
		return len(r.Receivers) == 1 && r.Receivers[0].Counts["delivered"] == 1
	})
	if one := r.Receivers[0]; one.Kind != "webhook" || !strings.HasPrefix(one.Place, "127.0.0.1:") ||
		fmt.Sprint(one.Rules) != "[ends frozen]" {
		t.Errorf("%+v", one)
	}
	for _, path := range []string{"/v1/notify/receivers", "/v1/notify/messages", "/v1/notify/messages/" + m.ID,
		"/v1/health", "/metrics"} {
		if _, text := w.raw("GET", path, nil, bearing(admin)); strings.Contains(string(text), "SECRET") {
			t.Errorf("%s shows the URL: %s", path, text)
		}
	}
	if _, text := w.raw("GET", "/metrics", nil, bearing(admin)); !strings.Contains(string(text),
		`muster_notify_messages{receiver="desk",state="delivered"} 1`) {
		t.Errorf("metrics: %s", text)
	}
	if got := w.status("POST", "/v1/notify/receivers/nobody/test", admin); got != http.StatusNotFound {
		t.Errorf("an unknown receiver: %d", got)
	}
}

// callAs makes a request with a token, and reads its answer.
func (w *world) callAs(method, path, token string, into any) {
	w.t.Helper()
	res, text := w.raw(method, path, nil, bearing(token))
	if res.StatusCode >= 300 {
		w.t.Fatalf("%s %s: %s: %s", method, path, res.Status, text)
	}
	if err := json.Unmarshal(text, into); err != nil {
		w.t.Fatal(err)
	}
}

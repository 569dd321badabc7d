package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"muster/access"
	"muster/fleet"
	"muster/jobs"
	"muster/server"
)

// changing is a policy that a test changes: its function sets the lines of who, beside those of root.
func changing(t *testing.T, who string) (read func() (*access.Policy, error), say func(who string)) {
	t.Helper()
	var now atomic.Pointer[access.Policy]
	say = func(who string) {
		t.Helper()
		text := "who:\n  - {principal: os:root, roles: [admin]}\n" + who
		p, err := access.Parse(fleet.Source{Name: "access.yaml", Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		now.Store(p)
	}
	say(who)
	return func() (*access.Policy, error) { return now.Load(), nil }, say
}

// ended reads a stream to its end, and returns all that it said.
func (e *ear) ended() string {
	var said strings.Builder
	for e.lines.Scan() {
		said.WriteString(e.lines.Text() + "\n")
	}
	return said.String()
}

// An open stream ends when its caller loses the right, by whatever way.
func TestAnOpenStreamEndsWithTheRightToIt(t *testing.T) {
	t.Parallel()
	const viewer = "  - {principal: user:bob, roles: [viewer]}\n"
	for _, way := range []string{"the access file", "the token"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			policy, say := changing(t, viewer)
			w := start(t, setup{inventory: fixed(twoCustomers()),
				more: func(d *server.Deps) { d.Policy = policy }})
			task, token := w.submit(run("fw-a1")).Task, w.token("bob")
			events := w.listen("", bearing(token))
			output := w.listenTo("/v1/tasks/"+string(task)+"/output", bearing(token))
			if events.res.StatusCode != 200 || output.res.StatusCode != 200 {
				t.Fatal(events.res.Status, output.res.Status)
			}
			if way == "the token" {
				if res, text := w.raw("DELETE", "/v1/tokens/t", nil, bearing(token)); res.StatusCode/100 != 2 {
					t.Fatalf("%s %s", res.Status, text)
				}
			} else {
				say("")
			}
			events.ended()
			output.ended()
			if got := w.status("GET", "/v1/events", token); got != 401 && got != 403 {
				t.Errorf("the next request: %d", got)
			}
		})
	}
}

// An operator of acme who stores a content learns nothing of the one who stored it first.
func TestWhoStoresAContentAgainLearnsNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	put := func(token, query, sum, text string) (*http.Response, string) {
		t.Helper()
		h := bearing(token)
		h.Set("Content-Type", "application/octet-stream")
		res, body := w.raw("PUT", fmt.Sprintf("/v1/blobs/%s?name=%s", sum, query), text, h)
		return res, string(body)
	}
	bolt, acme := w.token("operator"), w.token("operator-acme")
	text := strings.Repeat("firmware of bolt ", 1000)
	if res, said := put(bolt, fmt.Sprintf("bolt.bin&size=%d", len(text)), sumOf(text), text); res.StatusCode != 200 {
		t.Fatalf("%s %s", res.Status, said)
	}
	res, said := put(acme, fmt.Sprintf("mine.bin&size=%d", len(text)), sumOf(text), text)
	if res.StatusCode != 200 || strings.Contains(said, "bolt") || !strings.Contains(said, "mine.bin") ||
		!strings.Contains(said, `"by":"user:operator-acme"`) {
		t.Errorf("the same content: %s %s", res.Status, said)
	}
	other := strings.Repeat("x", len(text))
	for name, c := range map[string]struct {
		text string
		size int
	}{"nothing": {"", len(text)}, "other bytes": {other, len(text)}, "less": {text[1:], len(text)},
		"more": {text + "x", len(text)}, "no size": {"", 0}} {
		query := fmt.Sprintf("x&size=%d", c.size)
		there, said := put(acme, query, sumOf(text), c.text)
		none, other := put(acme, query, sumOf("never stored"), c.text)
		said = strings.ReplaceAll(said, sumOf(text), "SUM")
		other = strings.ReplaceAll(other, sumOf("never stored"), "SUM")
		if there.StatusCode != none.StatusCode || said != other {
			t.Errorf("%s under the sum of a stored content: %s %s, and of none: %s %s", name, there.Status, said,
				none.Status, other)
		}
	}
	var list struct{ Blobs []jobs.Blob }
	if w.call("GET", "/v1/blobs", nil, &list); len(list.Blobs) != 1 || list.Blobs[0].Name != "bolt.bin" {
		t.Errorf("the admin sees %+v", list.Blobs)
	}
}

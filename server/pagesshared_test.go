package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/access"
	"muster/server"
	"muster/server/recent"
	"muster/testkit/sqltest"
)

// Pages share the answers of these paths among all from whom nothing is hidden, so nothing else about
// the caller may be in them.
func TestSharedAnswersAreTheSameForAll(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	w := start(t, setup{inventory: fixed(twoCustomers()), history: openHistory(t, sqltest.SQLite(t)),
		more: func(d *server.Deps) { d.Policy = policy }})
	task := string(w.submit(run("fw-a[1,2]")).Task)
	w.submit(run("fw-b1"))
	w.work("default", succeed)
	waitFor(t, "history has the jobs", func() bool {
		_, text := w.raw("GET", "/v1/history", nil, nil)
		return strings.Count(string(text), `"outcome":"succeeded"`) == 3
	})
	var tokens []string
	for _, role := range access.Roles() {
		tokens = append(tokens, w.token(role))
	}
	for path := range recent.Paths() {
		path = strings.Replace(path, "{task}", task, 1)
		var first string
		for i, token := range tokens {
			res, text := w.raw("GET", path, nil, bearing(token))
			if res.StatusCode != http.StatusOK {
				continue // a role that may not see it
			}
			if first == "" {
				first = string(text)
			}
			if string(text) != first {
				t.Errorf("%s: the role %s gets\n%s\nothers get\n%s", path, access.Roles()[i], text, first)
			}
		}
		if first == "" {
			t.Errorf("%s: no role gets an answer", path)
		}
	}
}

// parts opens the stream of a page, and calls each with the name and the content of its parts, until
// the context ends or each wants no more. It returns once the stream is open.
func (w *world) parts(ctx context.Context, page, token string,
	each func(id, html string) (more bool)) (over chan struct{}) {
	w.t.Helper()
	res := w.openAs(ctx, "GET", "/live?at="+page, token)
	over = make(chan struct{})
	go func() {
		defer close(over)
		defer res.Body.Close()
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 4<<20)
		for lines.Scan() {
			data, is := strings.CutPrefix(lines.Text(), "data: ")
			var one struct{ ID, HTML string }
			if is && json.Unmarshal([]byte(data), &one) == nil && one.ID != "" && !each(one.ID, one.HTML) {
				return
			}
		}
	}()
	return over
}

// Admins and a person of one customer have the same page open. That person gets nothing of others,
// whoever asks first.
func TestASharedAnswerShowsNobodyMore(t *testing.T) {
	t.Parallel()
	w := guarded(t)
	ctx, stop := context.WithCancel(t.Context())
	var open []chan struct{}
	defer func() {
		stop()
		for _, over := range open {
			<-over
		}
	}()
	whole := make(chan string, 100)
	for _, role := range []string{"operator", "admin", "viewer"} {
		open = append(open, w.parts(ctx, "/", w.token(role), func(id, html string) bool {
			if id == "runs" {
				whole <- html
			}
			return true
		}))
	}
	mine := make(chan string, 100)
	open = append(open, w.parts(ctx, "/", w.token("viewer-acme"), func(_, html string) bool {
		mine <- html
		return true
	}))
	for _, host := range []string{"fw-a1", "fw-a2"} {
		w.submit(run("fw-b1"))
		w.submit(run(host))
		for range 3 {
			for html := range whole {
				if strings.Contains(html, "fw-b1") && strings.Contains(html, host) {
					break
				}
			}
		}
		for html := range mine {
			if strings.Contains(html, "fw-b") {
				t.Fatalf("the viewer of acme gets %s", html)
			}
			if strings.Contains(html, host) {
				break
			}
		}
	}
}

package server_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server"
)

// glass submits a task with which a person breaks the glass.
func (w crowd) glass(user, on, reason string) (d api.HeldDetail, status int, said string) {
	w.t.Helper()
	var t api.Submitted
	res, text := w.raw("POST", "/v1/tasks?hold=true&break_glass="+url.QueryEscape(reason), run(on), w.bearer(user))
	if res.StatusCode != http.StatusCreated {
		return d, res.StatusCode, string(text)
	}
	if err := json.Unmarshal(text, &t); err != nil {
		w.t.Fatal(err)
	}
	w.call("GET", "/v1/approvals/"+string(t.Task), nil, &d)
	return d, res.StatusCode, ""
}

// breakers starts a server whose policy lets one operator of acme break the glass.
func breakers(t *testing.T) (crowd, archive) {
	t.Helper()
	a := audited(t)
	policy := policyOf(t, rolesPolicy()+`  - principal: user:operator-acme
    grants: [{verbs: [break-glass], hosts: customer=acme}]
  - principal: user:admin
    grants: [{verbs: [break-glass]}]
`)
	rules := trusting(t, `rules: [{people: 2, break_glass: ["user:operator-acme"], mode: require}]`)
	w := start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
		a.write(d)
	}})
	return crowd{w, map[string]string{}}, a
}

// One person breaks the glass where access and policy allow it. People are told before it takes effect,
// and a review stays open until somebody else has closed it.
func TestGlassIsBrokenAndReviewed(t *testing.T) {
	t.Parallel()
	w, a := breakers(t)
	if _, status, text := w.glass("operator", "fw-a1", "an outage"); status != 403 ||
		!strings.Contains(text, "break-glass") {
		t.Errorf("without the grant: %d: %s", status, text)
	}
	if _, status, text := w.glass("operator-acme", "fw-a1,fw-b1", "an outage"); status == 201 {
		t.Errorf("a host of somebody else: %d: %s", status, text)
	}
	other, _, _ := w.glass("admin", "fw-a1", "an outage")
	if status, text := w.endorse("admin", 2, other); status != 403 ||
		!strings.Contains(text, "does not let user:admin break the glass") {
		t.Errorf("without the policy: %d: %s", status, text)
	}
	d, _, text := w.glass("operator-acme", "fw-a1", "INC-7: the site is down")
	if d.BreakGlass != "INC-7: the site is down" {
		t.Fatalf("the plan: %+v: %s", d, text)
	}
	if status, text := w.endorse("approver", 0, d); status != 409 ||
		!strings.Contains(text, "only user:operator-acme signs") {
		t.Errorf("somebody else signs it: %d: %s", status, text)
	}
	if broken := a.verbs(t, "glass.break"); len(broken) > 0 {
		t.Errorf("entries before anything happened: %q", broken)
	}
	if status, text := w.endorse("operator-acme", 3, d); status != 200 ||
		!strings.Contains(text, `"committed":true`) {
		t.Fatalf("the glass is not broken: %d: %s", status, text)
	}
	if broken := a.verbs(t, "glass.break"); len(broken) != 1 || broken[0] != "task/"+string(d.Task) {
		t.Errorf("entries in the audit log: %q", broken)
	}
	if n := w.hubEvents("glass-broken"); n != 1 {
		t.Errorf("people were told %d times", n)
	}
	for path, words := range map[string]string{"/metrics": "muster_glass_broken_total 1",
		"/v1/health": "1 review of broken glass not closed", "/v1/reviews": "INC-7"} {
		if _, text := w.raw("GET", path, nil, w.bearer("admin")); !strings.Contains(string(text), words) {
			t.Errorf("%s does not say %q: %s", path, words, text)
		}
	}
	reviewed(t, w, d.Task)
}

// reviewed closes the only open review, after those who may not have tried.
func reviewed(t *testing.T, w crowd, id jobs.TaskID) {
	t.Helper()
	review := func(user, words string) (int, string) {
		res, text := w.raw("POST", "/v1/reviews/"+string(id), api.ReviewRequest{Words: words}, w.bearer(user))
		return res.StatusCode, string(text)
	}
	for _, x := range []struct {
		user, said string
		status     int
		words      string
	}{
		{"operator-acme", "well", 403, "may not approve"}, {"viewer", "well", 403, "may not approve"},
		{"approver", " ", 422, "words are needed"}, {"approver", "it was an outage", 200, "it was an outage"},
	} {
		if status, text := review(x.user, x.said); status != x.status || !strings.Contains(text, x.words) {
			t.Errorf("%s closes it with %q: %d, want %d and %q: %s", x.user, x.said, status, x.status, x.words, text)
		}
	}
	waitFor(t, "no open review", func() bool {
		_, text := w.raw("GET", "/v1/reviews", nil, w.bearer("admin"))
		return strings.Contains(string(text), `"reviews":[]`)
	})
	if status, text := review("approver", "again"); status != 404 {
		t.Errorf("a second time: %d: %s", status, text)
	}
	_, text := w.raw("GET", "/v1/reviews?all=true", nil, w.bearer("admin"))
	if !strings.Contains(string(text), `"by":"user:approver"`) ||
		!strings.Contains(string(text), `"who":"user:operator-acme"`) {
		t.Errorf("the closed review: %s", text)
	}
}

// The one who broke the glass closes no review, whatever they may do else.
func TestNobodyReviewsTheirOwnGlass(t *testing.T) {
	t.Parallel()
	a := audited(t)
	policy := policyOf(t, rolesPolicy()+"  - {principal: user:admin, grants: [{verbs: [break-glass]}]}\n")
	rules := trusting(t, `rules: [{people: 2, break_glass: ["user:admin"], mode: require}]`)
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
		a.write(d)
	}}), map[string]string{}}
	d, _, text := w.glass("admin", "all", "an outage")
	if status, text := w.endorse("admin", 2, d); status != 200 {
		t.Fatalf("%d: %s", status, text)
	}
	res, said := w.raw("POST", "/v1/reviews/"+string(d.Task), api.ReviewRequest{Words: "well"}, w.bearer("admin"))
	if res.StatusCode != 403 || !strings.Contains(string(said), "somebody else closes the review") {
		t.Errorf("%s: %s: %s", res.Status, said, text)
	}
}

// Without an audit log nobody breaks the glass: it must be written down before.
func TestGlassNeedsAnAuditLog(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy()+"  - {principal: user:admin, grants: [{verbs: [break-glass]}]}\n")
	rules := trusting(t, `rules: [{people: 2, break_glass: ["user:admin"], mode: require}]`)
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
	}}), map[string]string{}}
	d, _, _ := w.glass("admin", "all", "an outage")
	if status, text := w.endorse("admin", 2, d); status != 409 || !strings.Contains(text, "no audit log") {
		t.Errorf("%d: %s", status, text)
	}
}

// People take their signatures back while a task waits, and the one who ordered it takes back the task.
func TestASignatureIsTakenBack(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	rules := trusting(t, "rules: [{people: 2, mode: require}]")
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
	}}), map[string]string{}}
	d := w.hold("fw-a[1,2]")
	withdraw := func(user string) (int, string) {
		header := http.Header(nil)
		if user != "" {
			header = w.bearer(user)
		}
		res, text := w.raw("DELETE", "/v1/approvals/"+string(d.Task)+"/signature", nil, header)
		return res.StatusCode, string(text)
	}
	if status, text := withdraw("approver"); status != 404 || !strings.Contains(text, "have not signed") {
		t.Errorf("before a signature: %d: %s", status, text)
	}
	if status, text := w.endorse("approver", 0, d); status != 200 || !strings.Contains(text, `"missing":1`) {
		t.Fatalf("%d: %s", status, text)
	}
	if status, text := withdraw("approver"); status != 200 || !strings.Contains(text, `"missing":2`) {
		t.Errorf("after it: %d: %s", status, text)
	}
	if status, text := w.endorse("approver-acme", 1, d); status != 200 || !strings.Contains(text, `"missing":1`) {
		t.Errorf("a signature that was taken back still counts: %d: %s", status, text)
	}
	if status, text := withdraw(""); status != 200 || !strings.Contains(text, `"whole":true`) {
		t.Errorf("who ordered it: %d: %s", status, text)
	}
	if status, _ := w.endorse("approver", 0, d); status != 404 {
		t.Errorf("a task that was withdrawn is signed: %d", status)
	}
}

// hubEvents counts the events of the hub of one name.
func (w *world) hubEvents(name string) (n int) {
	w.t.Helper()
	list, _, err := w.queue.Events(w.t.Context(), "hub", "", 1000, time.Millisecond)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, h := range list {
		if h.Event == name {
			n++
		}
	}
	return n
}

// verbs returns the objects of the entries with a verb.
func (a archive) verbs(t *testing.T, verb string) (objects []string) {
	t.Helper()
	for _, r := range a.entries(t) {
		if r.Verb == verb && r.End == nil {
			objects = append(objects, r.Object)
		}
	}
	return objects
}

package server_test

import (
	"strings"
	"testing"

	"muster/api"
)

// A review of broken glass is closed on its page, by somebody else; the words of people are text.
func TestAReviewIsClosedOnItsPage(t *testing.T) {
	t.Parallel()
	w, _ := breakers(t)
	const evil = `INC-7 <img src=x onerror="alert(1)">`
	d, _, text := w.glass("operator-acme", "fw-a1", evil)
	if status, said := w.endorse("operator-acme", 3, d); status != 200 {
		t.Fatalf("the glass is not broken: %d %s %s", status, said, text)
	}
	_, raw := w.raw("GET", "/reviews", nil, w.bearer("admin"))
	order := "/reviews/" + string(d.Task) + "/order/review"
	if strings.Contains(string(raw), "<img") || !strings.Contains(string(raw), order) {
		t.Fatalf("the reviews:\n%s", raw)
	}
	if _, text := w.page("/reviews", w.bearer("viewer")); strings.Contains(text, order) ||
		!strings.Contains(text, "You may close none of them: ") {
		t.Errorf("who may only see:\n%s", text)
	}
	if res, _ := w.page("/reviews", w.bearer("operator-acme")); res.StatusCode != 403 {
		t.Errorf("who sees acme only: %s", res.Status)
	}
	_, ask := w.page(order, w.bearer("admin"))
	form := hidden(ask)
	if res, _ := w.post(order, form, w.bearer("admin")); res.StatusCode != 422 {
		t.Errorf("without words: %s", res.Status)
	}
	form.Set("reason", "the site was down, and the rules are right")
	if res, text := w.post(order, form, w.bearer("admin")); res.StatusCode != 303 ||
		res.Header.Get("Location") != "/reviews?all=true&did=review" {
		t.Fatalf("%s to %q\n%s", res.Status, res.Header.Get("Location"), text)
	}
	waitFor(t, "no review is open", func() bool { // its end is in the audit log
		_, text := w.page("/reviews", w.bearer("admin"))
		return strings.Contains(text, "No review is open")
	})
	if _, text := w.page("/reviews?all=true", w.bearer("admin")); !strings.Contains(text, "the rules are right") {
		t.Errorf("all of them:\n%s", text)
	}
	if res, _ := w.page(order, w.bearer("admin")); res.StatusCode != 404 {
		t.Errorf("a second time: %s", res.Status)
	}
}

// Sessions are listed and ended on a page; nobody sees or ends those of others.
func TestASessionIsEndedOnItsPage(t *testing.T) {
	t.Parallel()
	w, b := housed(t, setup{})
	if _, page := b.enter(w.link(nil).URL); !strings.Contains(page, "Log out") {
		t.Fatalf("no login:\n%s", page)
	}
	var list api.SessionList
	w.call("GET", "/v1/sessions", nil, &list)
	order := "/sessions/" + list.Sessions[0].ID + "/order/end"
	if _, text := b.send("GET", "/sessions", nil); !strings.Contains(text, order) {
		t.Fatalf("the sessions:\n%s", text)
	}
	other := bearing(w.token("bob"))
	if _, text := w.page("/sessions", other); strings.Contains(text, list.Sessions[0].ID) ||
		!strings.Contains(text, "There is none") {
		t.Errorf("for bob:\n%s", text)
	}
	if res, _ := w.page(order, other); res.StatusCode != 404 {
		t.Errorf("bob ends it: %s", res.Status)
	}
	_, ask := w.page(order, nil)
	if res, text := w.post(order, hidden(ask), nil); res.StatusCode != 303 {
		t.Fatalf("%s\n%s", res.Status, text)
	}
	if who := b.who(); who != "" {
		t.Errorf("the browser is still %s", who)
	}
}

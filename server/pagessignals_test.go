package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"muster/api"
)

// An event is seen, held against the triggers of now and sent again on its pages; its body is text.
// A person with the rights for one customer hears nothing of the house.
func TestAnEventIsSeenAndSentAgainOnItsPages(t *testing.T) {
	t.Parallel()
	w := receiving(t)
	admin, one := bearing(w.token("admin")), bearing(w.token("operator-acme"))
	const evil = `<script>alert(1)</script>`
	ids := map[string]string{}
	for source, body := range map[string]string{"all": `{"a": "` + evil + `"}`, "acme": `{"b": 1}`} {
		var taken api.EventTaken
		res, text := w.raw("POST", "/v1/inbox", api.EventSend{Source: source, Body: json.RawMessage(body)}, admin)
		if err := json.Unmarshal(text, &taken); err != nil || taken.Event == "" {
			t.Fatalf("%s: %s", res.Status, text)
		}
		ids[source] = taken.Event
	}
	_, text := w.page("/events", admin)
	for _, want := range []string{"/events/" + ids["all"], "/events/" + ids["acme"], "/events?source=acme", "the house"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	if _, text := w.page("/events?source=acme", admin); strings.Contains(text, "/events/"+ids["all"]) ||
		!strings.Contains(text, `value="acme"`) {
		t.Errorf("the events of acme:\n%s", text)
	}
	if res, text := w.page("/events?state=dancing", admin); res.StatusCode != 422 || !strings.Contains(text, "state") {
		t.Errorf("a state that is none: %s\n%s", res.Status, text)
	}
	if _, text := w.page("/events", one); strings.Contains(text, ids["all"]) || !strings.Contains(text, ids["acme"]) ||
		!strings.Contains(text, "Sources: not shown here") {
		t.Errorf("for who sees acme:\n%s", text)
	}
	if res, _ := w.page("/events/"+ids["all"], one); res.StatusCode != 404 {
		t.Errorf("an event of the house for who sees acme: %s", res.Status)
	}
	_, raw := w.raw("GET", "/events/"+ids["all"], nil, admin)
	if strings.Contains(string(raw), evil) || !strings.Contains(string(raw), "alert(1)") {
		t.Errorf("the body of an event:\n%s", raw)
	}
	if _, text := w.page("/events/"+ids["all"]+"/test", admin); !strings.Contains(text, "No trigger is in force") {
		t.Errorf("against the triggers:\n%s", text)
	}
	order := "/events/" + ids["acme"] + "/order/replay"
	if _, text := w.page("/events/"+ids["acme"], one); !strings.Contains(text, order) {
		t.Errorf("the event of acme:\n%s", text)
	}
	_, ask := w.page(order, one)
	res, text := w.post(order, hidden(ask), one)
	to := res.Header.Get("Location")
	if res.StatusCode != 303 || !strings.HasPrefix(to, "/events/") || strings.Contains(to, ids["acme"]) {
		t.Fatalf("%s to %q\n%s", res.Status, to, text)
	}
	if _, text := w.page(to, one); !strings.Contains(text, "Repeats") || !strings.Contains(text, ids["acme"]) {
		t.Errorf("the new event:\n%s", text)
	}
	see := bearing(w.token("viewer"))
	if _, text := w.page("/events/"+ids["acme"], see); strings.Contains(text, order) {
		t.Errorf("the page offers %s to who may only see", order)
	}
	if res, _ := w.post(order, hidden(ask), see); res.StatusCode != 403 {
		t.Errorf("who may only see sends it again: %s", res.Status)
	}
}

// The triggers have their pages, with what they did.
func TestTriggersHaveTheirPages(t *testing.T) {
	t.Parallel()
	w, in, c := arriving(t, nil)
	if _, text := w.page("/triggers/rules-check", nil); !strings.Contains(text, "Nothing of what you may see") {
		t.Errorf("a trigger that did nothing:\n%s", text)
	}
	const other = `{"ref": "refs/heads/main", "repository": {"full_name": "other/rules"}}`
	if _, err := deliver(t, in, other, secret); err != nil {
		t.Fatal(err)
	}
	w.dispatch(in, c, false)
	_, text := w.page("/triggers", nil)
	for _, want := range []string{"/triggers/rules-check", "/triggers/diagnose", "/runbooks/diagnose"} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	_, text = w.page("/triggers/diagnose", nil)
	for _, want := range []string{"trigger:diagnose", "alertmanager", "10/1h", "role=fw"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page of a trigger lacks %q:\n%s", want, text)
		}
	}
	if res, text := w.page("/firings?trigger=rules-check", nil); res.StatusCode != 200 {
		t.Errorf("%s\n%s", res.Status, text)
	}
	if res, _ := w.page("/triggers/none", nil); res.StatusCode != 404 {
		t.Errorf("a trigger that is none: %s", res.Status)
	}
	if res, text := w.page("/triggers", bearing(w.token("operator-acme"))); res.StatusCode != 403 ||
		!strings.Contains(text, "You may not see or do this") {
		t.Errorf("for who sees acme: %s\n%s", res.Status, text)
	}
}

// Messages and receivers have their pages; a receiver is tried there, and its URL stays hidden.
func TestAReceiverIsTriedOnItsPage(t *testing.T) {
	t.Parallel()
	w, got := hooked(t)
	admin := bearing(w.token("admin"))
	if _, text := w.page("/notices", admin); !strings.Contains(text, "No message that is kept") {
		t.Errorf("an empty house:\n%s", text)
	}
	_, text := w.page("/receivers", admin)
	const order = "/receivers/desk/order/test"
	if !strings.Contains(text, order) || !strings.Contains(text, "ends, frozen") || strings.Contains(text, "T0SECRET") {
		t.Fatalf("the receivers:\n%s", text)
	}
	_, ask := w.page(order, admin)
	res, text := w.post(order, hidden(ask), admin)
	to := res.Header.Get("Location")
	if res.StatusCode != 303 || !strings.HasPrefix(to, "/notices/") {
		t.Fatalf("%s to %q\n%s", res.Status, to, text)
	}
	<-got
	waitFor(t, "the test is delivered", func() bool {
		_, text = w.page(to, admin)
		return strings.Contains(text, "delivered")
	})
	if !strings.Contains(text, "As a webhook gets it") || strings.Contains(text, "T0SECRET") {
		t.Errorf("the message:\n%s", text)
	}
	if _, text := w.page("/notices?state=delivered&receiver=desk", admin); !strings.Contains(text,
		strings.TrimSuffix(to, "?did=test")) {
		t.Errorf("the messages:\n%s", text)
	}
	one := bearing(w.token("operator-acme"))
	if res, _ := w.page("/receivers", one); res.StatusCode != http.StatusForbidden {
		t.Errorf("the receivers for who sees acme: %s", res.Status)
	}
	if res, _ := w.page("/receivers/nobody/order/test", admin); res.StatusCode != 404 {
		t.Errorf("a receiver that is none: %s", res.Status)
	}
	plain := start(t, setup{})
	if res, text := plain.page("/notices", nil); res.StatusCode != 200 ||
		!strings.Contains(text, "keeps no notifications") {
		t.Errorf("without rules: %s\n%s", res.Status, text)
	}
	if res, text := plain.page("/events", nil); res.StatusCode != 200 || !strings.Contains(text, "takes no events") {
		t.Errorf("without sources: %s\n%s", res.Status, text)
	}
}

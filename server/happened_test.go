package server_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"muster/api"
	"muster/history/happened"
	"muster/jobs"
)

// happenedOf returns all pages of past events as a caller gets them.
func (w *world) happenedOf(question, token string, most int) (list []api.PastEvent) {
	w.t.Helper()
	for cursor := ""; ; {
		path := "/v1/history/events?limit=" + strconv.Itoa(most) + "&" + question
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		res, text := w.raw("GET", path, nil, bearing(token))
		var page api.PastEvents
		if err := json.Unmarshal(text, &page); err != nil || res.StatusCode != http.StatusOK || page.Unsaid {
			w.t.Fatalf("%s: %s %s", path, res.Status, text)
		}
		list = append(list, page.Events...)
		if cursor = page.Next; cursor == "" {
			return list
		}
		if len(page.Events) != most {
			w.t.Fatalf("%s: a page of %d of %d events has another behind it", path, len(page.Events), most)
		}
	}
}

// Past events of a time are those of tasks and jobs that the caller sees, in full pages; orders
// about the whole house are for those who see all of it.
func TestPastEventsAreThoseOfTheOwnHosts(t *testing.T) {
	t.Parallel()
	w, store := scoped(t)
	both := w.submit(run("fw-a[1,2],fw-b[1,2]")).Task
	own := w.submit(api.Submit{Runbook: "label", On: "fw-a1", Args: map[string]string{"word": "tango"}}).Task
	foreign := w.submit(run("fw-b2")).Task
	for range 3 {
		w.work("default", succeed)
	}
	operator := w.token("operator")
	for _, order := range []string{"halt", "lift"} {
		res, text := w.raw("POST", "/v1/"+order, api.OrderRequest{Reason: "cables"}, bearing(operator))
		if res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", order, res.Status, text)
		}
	}
	waitFor(t, "history", func() bool {
		list, _, err := happened.List(t.Context(), store, happened.Filter{Kinds: []string{"lift", "task"}}, "", 10)
		return err == nil && len(list) == 4
	})
	const since = "from=2020-01-01T00:00:00Z"
	// History may still get an event, but not for ever.
	waitFor(t, "the same events in pages of all sizes", func() bool {
		whole := len(w.happenedOf(since, operator, 500))
		return len(w.happenedOf(since, operator, 1)) == whole && len(w.happenedOf(since, operator, 3)) == whole
	})
	acme := w.token("operator-acme")
	for _, most := range []int{1, 3, 500} {
		for _, h := range w.happenedOf(since, acme, most) {
			if strings.Contains(h.Object, "fw-b") || h.Object == string(both) || h.Object == "zone" ||
				h.Object == string(foreign) {
				t.Errorf("operator-acme sees %s of %s", h.Event, h.Object)
			}
		}
	}
	// The end of each job, and the submit of the own task: these the owner must see.
	want := map[string]int{"end": 3, "submit": 1}
	for name, n := range want {
		if got := w.happenedOf(since+"&event="+name, acme, 1); len(got) != n {
			t.Errorf("operator-acme sees %d times %s, want %d: %+v", len(got), name, n, got)
		}
	}
	if got := w.happenedOf(since+"&event=end", w.token("label"), 2); len(got) != 1 ||
		got[0].Object != string(jobs.NewID(own, "fw-a1")) {
		t.Errorf("whoever sees one runbook sees the ends %+v", got)
	}
	orders := w.happenedOf(since+"&event=halt,lift", operator, 1)
	if len(orders) != 2 || orders[0].Event != "halt" || orders[0].Who == "" ||
		len(w.happenedOf(since+"&event=halt,lift&who="+orders[0].Who, operator, 2)) != 2 ||
		len(w.happenedOf(since+"&event=halt,lift&who=somebody", operator, 2)) != 0 {
		t.Errorf("the orders are %+v", orders)
	}
	for question, place := range map[string]string{"": "query.of", since + "&event=A,b": "query.event",
		"from=noon": "query.from", since + "&host=%20": "query.host", since + "&cursor=7": "query.cursor",
		"of=" + string(own) + ":fw-a1&host=fw-a2": "query.host", since + "&zone=%20": "query.zone"} {
		res, text := w.raw("GET", "/v1/history/events?"+question, nil, bearing(operator))
		if res.StatusCode/100 != 4 || !strings.Contains(string(text), place) {
			t.Errorf("%q: %s %s, want a mistake at %s", question, res.Status, text, place)
		}
	}
}

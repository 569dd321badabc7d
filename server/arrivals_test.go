package server_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/server"
	"muster/server/arrivals"
	"muster/testkit/redistest"
)

// plainRecords signs nothing.
type plainRecords struct{}

func (plainRecords) Vouch(_, text string) (string, error)   { return text, nil }
func (plainRecords) Vouched(_, kept string) (string, error) { return kept, nil }

// receiving is a server that takes events of acme, and of the whole house.
func receiving(t *testing.T) *world {
	t.Helper()
	_, cfg := redistest.StartMini(t)
	c, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	list, err := ingress.Parse(fleet.Source{Name: "events.yaml", Data: []byte("sources:\n" +
		"- {name: acme, preset: token, secret_file: /s, customer: acme}\n" +
		"- {name: all, preset: token, secret_file: /s}\n")})
	if err != nil {
		t.Fatal(err)
	}
	policy := policyOf(t, rolesPolicy())
	return start(t, setup{redis: &cfg, inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy = policy
		d.Events = arrivals.Needs{Inbox: inbox.New(c, plainRecords{}),
			Sources: func() (*ingress.Sources, error) { return list, nil },
			Secrets: func(s ingress.Source) ([]ingress.Secret, error) {
				return ingress.ParseSecrets([]byte("a secret of the source"), s.Form.Proof)
			}}
	}})
}

// A source needs no token of ours, and a token of ours is no proof of a source.
func TestASourceProvesItselfAndIsWorkedOn(t *testing.T) {
	t.Parallel()
	w := receiving(t)
	admin := w.token("admin")
	if got := w.status("POST", "/v1/ingress/all", admin); got != http.StatusUnauthorized {
		t.Errorf("a token of muster: %d", got)
	}
	if got := w.status("POST", "/v1/ingress/none", "a secret of the source"); got != http.StatusUnauthorized {
		t.Errorf("another source: %d", got)
	}
	ids := map[string]string{}
	for _, source := range []string{"all", "acme"} {
		res, text := w.raw("POST", "/v1/ingress/"+source, map[string]string{"a": source},
			bearing("a secret of the source"))
		var taken api.EventTaken
		if err := json.Unmarshal(text, &taken); err != nil || res.StatusCode != http.StatusAccepted {
			t.Fatalf("%s: %s", res.Status, text)
		}
		ids[source] = taken.Event
	}
	var e api.Event
	waitFor(t, "the event is done", func() bool {
		w.callAs("GET", "/v1/inbox/"+ids["all"], admin, &e)
		return e.State == "done"
	})
	if string(e.Body) != `{"a":"all"}` || e.Source != "all" || e.Customer != "" {
		t.Errorf("%+v", e)
	}
	operator, list := w.token("operator-acme"), api.EventList{}
	w.callAs("GET", "/v1/inbox", operator, &list)
	if len(list.Events) != 1 || list.Events[0].Event != ids["acme"] {
		t.Errorf("an operator of acme sees %+v", list.Events)
	}
	for source, want := range map[string]int{"acme": 200, "all": 404} {
		if got := w.status("GET", "/v1/inbox/"+ids[source], operator); got != want {
			t.Errorf("an operator of acme, an event of %s: %d, want %d", source, got, want)
		}
		if got := w.status("POST", "/v1/inbox/"+ids[source]+"/replay", operator); got != want {
			t.Errorf("an operator of acme replays an event of %s: %d, want %d", source, got, want)
		}
	}
}

// Somebody sends events of the customers only on whose hosts they may order.
func TestEventsAreSentByHandWithinRights(t *testing.T) {
	t.Parallel()
	w := receiving(t)
	body := json.RawMessage(`{"host": "fw-a1"}`)
	tokens := map[string]string{"admin": w.token("admin"), "operator-acme": w.token("operator-acme")}
	for _, c := range []struct {
		who  string
		send api.EventSend
		want int
	}{
		{"operator-acme", api.EventSend{Kind: "look", Customer: "acme", Body: body}, 200},
		{"operator-acme", api.EventSend{Source: "acme", Body: body}, 200},
		{"operator-acme", api.EventSend{Kind: "look", Customer: "bolt", Body: body}, 403},
		{"operator-acme", api.EventSend{Kind: "look", Customer: "nobody", Body: body}, 403},
		{"operator-acme", api.EventSend{Kind: "look", Body: body}, 403},
		{"operator-acme", api.EventSend{Source: "all", Body: body}, 403},
		{"admin", api.EventSend{Source: "all", Body: body}, 200},
		{"admin", api.EventSend{Source: "none", Kind: "a b", Body: body}, 422},
		{"admin", api.EventSend{Source: "acme", Customer: "bolt", Body: body}, 422},
	} {
		res, text := w.raw("POST", "/v1/inbox", c.send, bearing(tokens[c.who]))
		if res.StatusCode != c.want {
			t.Errorf("%s sends %+v: %s: %s, want %d", c.who, c.send, res.Status, text, c.want)
		}
	}
	var s api.EventSources
	w.callAs("GET", "/v1/ingress", tokens["admin"], &s)
	if len(s.Sources) != 4 || s.Sources[0].Counts["taken"] != 1 || s.Sources[2].Counts["taken"] != 1 {
		t.Errorf("sources: %+v", s)
	}
}

package server_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/events"
	"muster/fleet"
	"muster/ingress"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/inbox"
	"muster/jobs/queue/keys"
	"muster/server"
	"muster/server/arrivals"
	"muster/server/dispatch"
	"muster/server/firing"
	"muster/testkit/redistest"
	"muster/triggers"
)

// page returns the triggers that docs/TRIGGERS.md shows, with a ruleset that is there.
func page(t *testing.T) *triggers.Set {
	t.Helper()
	data, err := os.ReadFile("../docs/TRIGGERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(data), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	rules := filepath.Join(t.TempDir(), "edge.nft")
	if err := os.WriteFile(rules, []byte("flush ruleset\ntable inet filter {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := triggers.Parse(fleet.Source{Name: "docs/TRIGGERS.md",
		Data: []byte(strings.ReplaceAll(text, "/srv/rules/acme/edge.nft", rules))})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// diagnosis is the runbook that the page names.
const diagnosis = `
name: diagnose
arguments:
  alert: {type: string, required: true, pattern: '[A-Za-z]+'}
  depth: {type: enum, values: [short, full], default: short}
repeatable: true
steps:
  - {name: look, run: "echo {{alert}} {{depth}}; uptime"}
`

// arriving is a server with the triggers of the page, and an inbox on a real Redis. With a door it
// works on events itself.
func arriving(t *testing.T, door *ingress.Sources) (*world, *inbox.Inbox, *queue.Conn) {
	t.Helper()
	cfg := redistest.StartServer(t).Config()
	set := page(t)
	list := twoCustomers()
	for i := range list {
		list[i].Labels = map[string]string{"role": "fw"}
	}
	policy := policyOf(t, rolesPolicy()+`  - {principal: "trigger:rules-check", roles: [operator], runbooks: ["firewall*"]}
  - {principal: "trigger:diagnose", roles: [operator], runbooks: [diagnose]}
`)
	conn, err := queue.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	in := inbox.New(conn, unsigned{})
	w := start(t, setup{redis: &cfg, inventory: fixed(list), runbooks: []string{diagnosis},
		more: func(d *server.Deps) {
			d.Policy, d.Triggers = policy, func() (*triggers.Set, error) { return set, nil }
			if door != nil {
				d.Events = arrivals.Needs{Inbox: in, Sources: func() (*ingress.Sources, error) { return door, nil },
					Secrets: func(ingress.Source) ([]ingress.Secret, error) {
						return []ingress.Secret{ingress.Secret(secret)}, nil
					}}
			}
		}})
	return w, in, conn
}

type unsigned struct{}

func (unsigned) Vouch(_, text string) (string, error)   { return text, nil }
func (unsigned) Vouched(_, kept string) (string, error) { return kept, nil }

const secret = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// deliver gives an inbox a delivery of GitHub, if its signature holds.
func deliver(t *testing.T, in *inbox.Inbox, body, key string) (inbox.Taken, error) {
	t.Helper()
	all, err := ingress.Parse(fleet.Source{Name: "s", Data: []byte(
		"sources:\n  - {name: rules, preset: github, secret_file: /x, customer: acme}\n")})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := all.Find("rules")
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(body))
	h := http.Header{}
	h.Set("X-GitHub-Event", "push")
	h.Set("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
	h.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	d, err := s.Accept(ingress.Message{Header: h.Values, Body: []byte(body), At: time.Now()},
		[]ingress.Secret{ingress.Secret(secret)})
	if err != nil {
		return inbox.Taken{}, err
	}
	return in.Take(t.Context(), inbox.Arrival{Event: events.Event{ID: d.ID, Source: s.Name, Kind: d.Kind,
		Customer: d.Customer, At: time.Now(), Body: []byte(body)}, Class: s.Class, Bounds: s.Bounds})
}

// dying is a server that dies each time after it has worked on an event, and before it says so.
type dying struct {
	dispatch.Firer
	die context.CancelFunc
}

func (d dying) Fire(ctx context.Context, e events.Event) (events.Outcome, error) {
	out, err := d.Firer.Fire(ctx, e)
	d.die()
	if err == nil {
		err = errors.New("the server died")
	}
	return out, err
}

// lease is a term that nobody ends.
type lease int64

func (l lease) Number() int64 { return int64(l) }
func (lease) Trusted() bool   { return true }

// dispatch runs a dispatcher until no event waits, or until its server has died.
func (w *world) dispatch(in *inbox.Inbox, c *queue.Conn, dies bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	term, err := hub.NewLeaders(c).Lead(ctx, inbox.Duty, "test", 0)
	if err == nil {
		err = c.Redis().Persist(ctx, keys.Hub("leader:", inbox.Duty)).Err()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Redis().Del(context.WithoutCancel(ctx), keys.Hub("leader:", inbox.Duty))
	var fire dispatch.Firer = w.server.Firer()
	if dies {
		fire = dying{fire, cancel}
	} else {
		go func() {
			ticks := time.NewTicker(10 * time.Millisecond)
			defer ticks.Stop()
			for ctx.Err() == nil {
				<-ticks.C
				list, err := in.Tallies(ctx)
				if err == nil && len(list) > 0 && list[0].Waiting == 0 {
					cancel()
				}
			}
		}()
	}
	n := dispatch.Needs{Inbox: in, Past: in, Fire: fire, Log: hclog.NewNullLogger(), Now: time.Now}
	if err := dispatch.New(n, lease(term.Number)).Run(ctx); err != nil {
		w.t.Error(err)
	}
}

// A signed push becomes one task, whoever dies in between and however often it is delivered.
func TestASignedWebhookBecomesOneTask(t *testing.T) {
	t.Parallel()
	w, in, c := arriving(t, nil)
	const push = `{"ref": "refs/heads/main", "repository": {"full_name": "acme/rules"}}`
	if _, err := deliver(t, in, push, "another key of 32 characters....."); err == nil {
		t.Fatal("a wrong signature was taken")
	}
	for i := range 3 {
		if got, err := deliver(t, in, push, secret); err != nil || got.Again != (i > 0) {
			t.Fatalf("delivery %d: %+v, %v", i, got, err)
		}
	}
	w.dispatch(in, c, true)
	w.dispatch(in, c, true)
	w.dispatch(in, c, false)
	var l api.FiringList
	w.call("GET", "/v1/firings", nil, &l)
	if len(l.Firings) != 1 || l.Firings[0].Result == "refused" || l.Firings[0].Trigger != "rules-check" {
		t.Fatalf("%+v", l)
	}
	// Half a minute later.
	n := w.server.Firer().Needs
	n.Now = func() time.Time { return time.Now().Add(31 * time.Second) }
	for range 2 {
		if err := firing.New(n).Due(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var all api.TaskList
	w.call("GET", "/v1/tasks", nil, &all)
	if len(all.Tasks) != 1 {
		w.call("GET", "/v1/firings", nil, &l)
		t.Fatalf("%d tasks, want one: %+v", len(all.Tasks), l)
	}
	if got := all.Tasks[0]; got.Runbook != "firewall (check)" || got.Operator != "trigger:rules-check" ||
		got.On != "fw-a[1-2]" || !got.Proven || got.Total != 2 {
		t.Errorf("%+v", got)
	}
}

// recordedAlert returns a body that Alertmanager has sent, about a host of this inventory.
func recordedAlert(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("../ingress/testdata/alertmanager.http")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := bytes.Cut(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	return bytes.ReplaceAll(body, []byte("fw001"), []byte("fw-a1"))
}

// An alert at the door of a server starts its task, and the same alert again starts none.
func TestAnAlertAtTheDoorStartsOneTask(t *testing.T) {
	t.Parallel()
	sources, err := ingress.Parse(fleet.Source{Name: "s", Data: []byte(`sources:
  - {name: alertmanager, preset: alertmanager, secret_file: /x, customer: acme}
`)})
	if err != nil {
		t.Fatal(err)
	}
	w, in, _ := arriving(t, sources)
	send := func(key string) int {
		r, err := http.NewRequest("POST", w.url+"/v1/ingress/alertmanager", bytes.NewReader(recordedAlert(t)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		res, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := send("another secret of 32 characters."); got != http.StatusUnauthorized {
		t.Errorf("a wrong secret: %d", got)
	}
	for range 3 {
		if got := send(secret); got != http.StatusAccepted {
			t.Errorf("%d", got)
		}
	}
	waitFor(t, "the end of the event", func() bool {
		list, err := in.Tallies(t.Context())
		return err == nil && len(list) == 1 && list[0].Done == 1 && list[0].Waiting == 0
	})
	var all api.TaskList
	w.call("GET", "/v1/tasks", nil, &all)
	if len(all.Tasks) != 1 || all.Tasks[0].On != "fw-a1" || all.Tasks[0].Operator != "trigger:diagnose" {
		t.Errorf("%+v", all.Tasks)
	}
}

// An alert, as Alertmanager sends it, runs the diagnosis on the host that it names, and on no other.
func TestAnAlertDiagnosesTheHostThatItNames(t *testing.T) {
	t.Parallel()
	w, in, c := arriving(t, nil)
	body := recordedAlert(t)
	at := time.Now()
	for _, id := range []string{"0000000000000000000000abcd", "0000000000000000000000abcd"} {
		_, err := in.Take(t.Context(), inbox.Arrival{Event: events.Event{ID: id, Source: "alertmanager",
			Kind: "firing", Customer: "acme", At: at, Body: body}, Class: ingress.Trigger,
			Bounds: ingress.Sent().Bounds})
		if err != nil {
			t.Fatal(err)
		}
	}
	w.dispatch(in, c, true)
	w.dispatch(in, c, false)
	var all api.TaskList
	w.call("GET", "/v1/tasks", nil, &all)
	if len(all.Tasks) != 1 || all.Tasks[0].On != "fw-a1" || all.Tasks[0].Runbook != "diagnose" ||
		all.Tasks[0].Reason != "event 0000000000000000000000abcd of alertmanager firing" {
		t.Fatalf("%+v", all.Tasks)
	}
	kept, err := in.Event(t.Context(), "0000000000000000000000abcd")
	if err != nil || len(kept.Outcome.Firings) != 1 ||
		kept.Outcome.Firings[0].Task != string(all.Tasks[0].Task) {
		t.Errorf("%+v, %v", kept, err)
	}
}

package server_test

import (
	"crypto/ed25519"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"muster/api"
	"muster/fleet"
	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/server"
	"muster/trust"
)

// keyOf returns the key of a person of tests.
func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), n))
}

// trusting returns whom a server trusts: itself and some people. More are lines of allowed_signers.
func trusting(t *testing.T, policy string, more ...string) func() (*trust.Rules, error) {
	t.Helper()
	keys, err := keyed(1)()
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	own, err := sshsig.KeyText(keys.Publics(serverkey.Orders)[0])
	lines.WriteString(trust.SignerLine(keys.Installation(), own) + "\n")
	for n, name := range []string{"approver", "approver-acme", "admin", "operator-acme"} {
		key, wrong := sshsig.KeyText(keyOf(byte(n)).Public().(ed25519.PublicKey))
		if wrong != nil {
			t.Fatal(wrong)
		}
		lines.WriteString("user:" + name + " " + key + "\n")
	}
	lines.WriteString(strings.Join(more, "\n"))
	allowed, e2 := sshsig.ParseAllowed([]byte(lines.String()))
	p, e3 := trust.ParsePolicy(fleet.Source{Name: "policy.yaml", Data: []byte(policy)})
	for _, err := range []error{err, e2, e3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return func() (*trust.Rules, error) { return &trust.Rules{Policy: p, Signers: allowed, Keys: keys}, nil }
}

// crowd is a world of people, each with a token.
type crowd struct {
	*world
	tokens map[string]string
}

// bearer returns the header with the token of a person.
func (w crowd) bearer(user string) http.Header {
	w.t.Helper()
	if w.tokens[user] == "" {
		w.tokens[user] = w.token(user)
	}
	return bearing(w.tokens[user])
}

// hold submits a task that waits for signatures, and returns it with its plan.
func (w *world) hold(on string) api.HeldDetail {
	w.t.Helper()
	var t api.Submitted
	res := w.call("POST", "/v1/tasks?hold=true", run(on), &t)
	var d api.HeldDetail
	w.call("GET", "/v1/approvals/"+string(t.Task), nil, &d)
	if res.StatusCode != http.StatusCreated || t.State != jobs.TaskSubmitting ||
		res.Header.Get(api.HeaderOrder) != d.Hash || trust.HashOf(d.Order) != d.Hash {
		w.t.Fatalf("hold: %s, %+v, %+v", res.Status, t, d)
	}
	return d
}

// endorse sends the signature of a person.
func (w crowd) endorse(user string, n byte, d api.HeldDetail) (int, string) {
	w.t.Helper()
	signature, err := sshsig.SignEd25519(keyOf(n), trust.NamespaceOrder, d.Order)
	if err != nil {
		w.t.Fatal(err)
	}
	res, text := w.raw("POST", "/v1/approvals/"+string(d.Task), api.EndorseRequest{Hash: d.Hash,
		Signature: string(signature)}, w.bearer(user))
	return res.StatusCode, string(text)
}

// Viewers see held tasks of their hosts, approvers sign them, and a task of others is not there.
func TestAHeldTaskIsSeenAndSignedByRight(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	rules := trusting(t, "rules: [{people: 1, mode: require}]")
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
	}}), map[string]string{}}
	ours, theirs := w.hold("fw-a[1,2]"), w.hold("fw-b1")
	if c := ours.Customers; len(c) != 1 || c[0] != (api.HeldCustomer{Customer: "acme", Count: 2, Hosts: "fw-a[1-2]"}) ||
		*ours.Missing != 1 || len(ours.Zones[0].Shares) != 1 || ours.Until.Sub(ours.Since.Time).Hours() != 24 {
		t.Errorf("the plan: %+v", ours)
	}
	for user, want := range map[string]int{"viewer": 2, "viewer-acme": 1, "auditor-acme": 1, "label": 0} {
		var l api.HeldList
		res, text := w.raw("GET", "/v1/approvals", nil, w.bearer(user))
		if err := json.Unmarshal(text, &l); err != nil || len(l.Approvals) != want {
			t.Errorf("%s sees %d of 2 tasks, want %d: %s %s", user, len(l.Approvals), want, res.Status, text)
		}
	}
	for _, x := range []struct {
		user   string
		key    byte
		task   api.HeldDetail
		status int
		words  string
	}{
		{"viewer", 0, ours, 403, "may not approve"},
		{"approver-acme", 1, theirs, 404, "task"},
		{"approver-acme", 0, ours, 403, "sign with your own key"},
		{"approver", 7, ours, 422, "in no line"},
		{"approver-acme", 1, ours, 200, `"committed":true`},
		{"approver", 0, ours, 404, "does not wait for signatures"},
		{"approver", 0, theirs, 200, `"committed":true`},
	} {
		if status, text := w.endorse(x.user, x.key, x.task); status != x.status || !strings.Contains(text, x.words) {
			t.Errorf("%s signs %s: %d, want %d and %q: %s", x.user, x.task.On, status, x.status, x.words, text)
		}
	}
}

// An operator signs a task of their own, and none of somebody else.
func TestAnOperatorSignsTheOwnTask(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	rules := trusting(t, "rules: [{level: person, mode: require}]")
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
	}}), map[string]string{}}
	var own api.Submitted
	res, text := w.raw("POST", "/v1/tasks?hold=true", run("fw-a[1,2]"), w.bearer("operator-acme"))
	if err := json.Unmarshal(text, &own); err != nil {
		t.Fatalf("%s: %v: %s", res.Status, err, text)
	}
	var d api.HeldDetail
	w.call("GET", "/v1/approvals/"+string(own.Task), nil, &d)
	others := w.hold("fw-a1")
	if status, text := w.endorse("operator-acme", 3, others); status != 403 || !strings.Contains(text, "may not approve") {
		t.Errorf("the task of somebody else: %d: %s", status, text)
	}
	if status, text := w.endorse("operator-acme", 3, d); status != 200 || !strings.Contains(text, `"committed":true`) {
		t.Errorf("the own task: %d: %s", status, text)
	}
}

// An approver refuses a task of somebody else with a reason, and its operator withdraws it without.
func TestAHeldTaskIsRefused(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()),
		more: func(d *server.Deps) { d.Policy = policy }}), map[string]string{}}
	first, second := w.hold("fw-a1"), w.hold("fw-b1")
	path := "/v1/approvals/" + string(first.Task)
	for _, x := range []struct {
		user, path string
		status     int
	}{
		{"viewer", path + "?reason=no", 403}, {"approver-acme", "/v1/approvals/" + string(second.Task), 404},
		{"approver-acme", path, 422}, {"approver-acme", path + "?reason=no", 200},
		{"approver-acme", path + "?reason=no", 404},
	} {
		if res, text := w.raw("DELETE", x.path, nil, w.bearer(x.user)); res.StatusCode != x.status {
			t.Errorf("%s: DELETE %s: %d, want %d: %s", x.user, x.path, res.StatusCode, x.status, text)
		}
	}
	var l api.HeldList
	if w.call("GET", "/v1/approvals", nil, &l); len(l.Approvals) != 1 || l.Approvals[0].Task != second.Task {
		t.Errorf("what still waits: %+v", l)
	}
	if res := w.call("DELETE", "/v1/approvals/"+string(second.Task), nil, nil); res.StatusCode != http.StatusOK {
		t.Errorf("who ordered it: %s", res.Status)
	}
}

// A signature is refused with words where nothing could come of it.
func TestASignatureIsRefusedWithWords(t *testing.T) {
	t.Parallel()
	list := twoCustomers()
	var changed atomic.Bool
	rules := trusting(t, "rules: [{people: 2, mode: require}]")
	w := crowd{start(t, setup{inventory: func() (*fleet.Inventory, error) {
		now := slices.Clone(list)
		if changed.Load() {
			now[0].Port, now = 23, now[:3]
		}
		return fleet.New(now)
	}, more: func(d *server.Deps) { d.Policy, d.Trust = policyOf(t, rolesPolicy()), rules }}), map[string]string{}}
	moved, gone, kept := w.hold("fw-a1"), w.hold("fw-b2"), w.hold("fw-b1")
	changed.Store(true)
	if err := w.server.Stock().Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		task  api.HeldDetail
		want  int
		words string
	}{{moved, 409, "fw-a1 is not as it was signed"}, {gone, 409, "fw-b2 has left the inventory"},
		{kept, 200, `"missing":1`}} {
		if status, text := w.endorse("approver", 0, x.task); status != x.want || !strings.Contains(text, x.words) {
			t.Errorf("%s: %d, want %d and %q: %s", x.task.On, status, x.want, x.words, text)
		}
	}

	plain := crowd{start(t, setup{}), map[string]string{}}
	d := plain.hold("all")
	if status, text := plain.endorse("carol", 0, d); status != 409 || !strings.Contains(text, "trust.dir in muster.yaml") {
		t.Errorf("a server without a folder trust: %d: %s", status, text)
	}
	if d.Missing != nil || len(d.Signed) > 0 {
		t.Errorf("a server without a folder trust knows who has signed: %+v", d)
	}
	staged := run("all")
	staged.Rollout = &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{Staged: true}}
	if res, text := plain.raw("POST", "/v1/tasks?hold=true", staged, nil); res.StatusCode != 422 ||
		!strings.Contains(string(text), "cannot wait for signatures") {
		t.Errorf("a chain that waits: %s: %s", res.Status, text)
	}
	keyless := start(t, setup{more: func(d *server.Deps) { d.ServerKeys = nil }})
	if res, text := keyless.raw("POST", "/v1/tasks?hold=true", run("all"), nil); res.StatusCode != 422 ||
		!strings.Contains(string(text), "has no key") {
		t.Errorf("a server without a key: %s: %s", res.Status, text)
	}
}

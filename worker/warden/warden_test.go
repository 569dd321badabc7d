package warden

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/trust"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// A shelf holds the order of a task, and counts the questions about it.
type shelf struct {
	order      []byte
	signatures []string
	lines      []string
	away       error
	asked      int
	alerts     []jobs.Alert
}

func (s *shelf) SignedOrder(context.Context, string, jobs.TaskID) ([]byte, []string, error) {
	s.asked++
	return s.order, s.signatures, s.away
}

func (s *shelf) Share(_ context.Context, _ string, _ jobs.TaskID, share int) (string, error) {
	s.asked++
	return s.lines[share], s.away
}

func (s *shelf) Alert(_ context.Context, _ string, a jobs.Alert) error {
	s.alerts = append(s.alerts, a)
	return nil
}

// world is a warden with a signed task for the hosts fw0 to fw9.
type world struct {
	shelf
	rules *trust.Rules
	fail  error // of reading the rules
	now   time.Time
	spec  jobs.Spec
	*Warden
}

func newWorld(t testing.TB, policy string) *world {
	t.Helper()
	key := func(first byte) serverkey.Keys {
		k, err := serverkey.Parse([]byte(serverkey.File("i1234", [serverkey.Size]byte{first})))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	servers := key(1)
	w := &world{now: noon, spec: jobs.Spec{Runbook: "exec", Action: json.RawMessage(`{"steps":[{}]}`)}}
	text, err := json.Marshal(w.spec)
	if err != nil {
		t.Fatal(err)
	}
	var hosts []fleet.Host
	for i := range 10 {
		hosts = append(hosts, hostOf(i))
	}
	order, lines, err := trust.New(trust.Order{Installation: "i1234", Task: "0000000001", NotBefore: noon,
		NotAfter: noon.Add(time.Hour), Spec: text, Kin: []fleet.Host{hostOf(10)}}, hosts, trust.RecordOf)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := trust.SignAs(servers, trust.NamespaceOrder, order)
	if err != nil {
		t.Fatal(err)
	}
	w.shelf = shelf{order: order, signatures: []string{signature}, lines: lines["default"]}
	by, err := trust.ServersOf(servers, noon)
	if err != nil {
		t.Fatal(err)
	}
	p, err := trust.ParsePolicy(fleet.Source{Name: "p", Data: []byte("rules:\n" + policy)})
	if err != nil {
		t.Fatal(err)
	}
	w.rules = &trust.Rules{Policy: p, Signers: by.Allowed, Keys: key(2)}
	w.Warden = New(&w.shelf, func() (*trust.Rules, error) { return w.rules, w.fail },
		func() time.Time { return w.now }, hclog.NewNullLogger())
	return w
}

func hostOf(i int) fleet.Host {
	return fleet.Host{Name: fmt.Sprint("fw", i), Address: "192.0.2.1", Port: 22, Zone: "default"}
}

func grantOf(i int) jobs.Grant {
	h := hostOf(i)
	return jobs.Grant{Job: jobs.NewID("0000000001", h.Name), Mode: jobs.ModeFresh, Host: &h}
}

const strict, lenient = "  - {level: server, mode: require}\n", "  - {level: server, mode: warn}\n"

// An order is read once for all jobs of its task, and again after a minute or a change of the rules.
func TestAnOrderIsReadOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	check := func() {
		t.Helper()
		for i := range 10 {
			if err := w.Check(t.Context(), "default", grantOf(i), w.spec); err != nil {
				t.Fatal(err)
			}
		}
	}
	check()
	check()
	if w.asked != 2 {
		t.Errorf("asked %d times", w.asked)
	}
	w.now = w.now.Add(examineEvery)
	check()
	again := *w.rules
	w.rules = &again
	check()
	if w.asked != 6 {
		t.Errorf("asked %d times after a minute and other rules", w.asked)
	}
	w.rules.Signers = sshsig.Allowed{}
	last := *w.rules
	w.rules = &last
	if err := w.Check(t.Context(), "default", grantOf(0), w.spec); !errors.As(err, new(*Doubt)) ||
		!strings.Contains(err.Error(), "the order does not hold: signature 1: ") {
		t.Errorf("a signer who was removed: %v", err)
	}
}

// A policy that lets jobs without an order run does not make an order of them.
func TestAnOrderHoldsWhateverThePolicyIs(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{strict, lenient, "  - {mode: off}\n"} {
		w := newWorld(t, policy)
		if err := w.Holds(t.Context(), "default", grantOf(1), w.spec); err != nil {
			t.Errorf("%s: %v", policy, err)
		}
		other := w.spec
		other.Runbook = "other"
		for name, err := range map[string]error{
			"another spec":  w.Holds(t.Context(), "default", grantOf(1), other),
			"another host":  w.Holds(t.Context(), "default", grantOf(11), w.spec),
			"another zone":  w.Holds(t.Context(), "dmz", grantOf(1), w.spec),
			"an early time": w.before(time.Hour).Holds(t.Context(), "default", grantOf(2), w.spec),
		} {
			if !errors.As(err, new(*Doubt)) {
				t.Errorf("%s, %s: %v, want a doubt", policy, name, err)
			}
		}
		w.away = errors.New("redis is away")
		w.rules = &trust.Rules{Policy: w.rules.Policy, Signers: w.rules.Signers, Keys: w.rules.Keys}
		if err := w.Holds(t.Context(), "default", grantOf(1), w.spec); err == nil || errors.As(err, new(*Doubt)) {
			t.Errorf("%s, Redis away: %v, want no doubt", policy, err)
		}
		w.rules = nil
		if err := w.Holds(t.Context(), "default", grantOf(1), w.spec); !errors.As(err, new(*Doubt)) {
			t.Errorf("%s, no rules: %v, want a doubt", policy, err)
		}
	}
}

// before sets the clock of the node back.
func (w *world) before(d time.Duration) *world {
	w.now = w.now.Add(-d)
	return w
}

// An order that nobody could examine is in no doubt: the job is tried again elsewhere.
func TestWhatIsNotKnownIsNoDoubt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	w.away = errors.New("Redis is away")
	if err := w.Check(t.Context(), "default", grantOf(0), w.spec); err == nil || errors.As(err, new(*Doubt)) {
		t.Errorf("without Redis: %v", err)
	}
	w.away, w.fail = nil, errors.New("policy.yaml:3: x")
	if err := w.Check(t.Context(), "default", grantOf(0), w.spec); err == nil || errors.As(err, new(*Doubt)) {
		t.Errorf("without rules: %v", err)
	}
	w.fail, w.rules = nil, nil
	if err := w.Check(t.Context(), "default", grantOf(0), jobs.Spec{Runbook: "other"}); err != nil {
		t.Errorf("a node that trusts Redis: %v", err)
	}
	if len(w.alerts) != 0 {
		t.Errorf("people were told: %v", w.alerts)
	}
}

// People hear once of a task, however many jobs of it do not hold, and a policy that only warns lets
// them run.
func TestPeopleHearOnceOfATask(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{strict, lenient} {
		w := newWorld(t, policy)
		other := w.spec
		other.Runbook = "other"
		for i := range 10 {
			if err := w.Check(t.Context(), "default", grantOf(i), other); (err != nil) != (policy == strict) {
				t.Errorf("%s: %v", policy, err)
			}
		}
		if len(w.alerts) != 1 || w.alerts[0].Event != "order-doubted" || w.alerts[0].Object != "0000000001:fw0" {
			t.Errorf("%s: people were told %v", policy, w.alerts)
		}
	}
}

// A warden takes the state that it sealed, for the same step only, and seals nothing that it did not
// make.
func TestAStateComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	g := grantOf(3)
	g.Step, g.Saved = 1, w.Seal(g.Job, 1, `{"again":1}`)
	if err := w.Check(t.Context(), "default", g, w.spec); err != nil {
		t.Error(err)
	}
	if again := w.Seal(g.Job, 2, g.Saved); again != g.Saved {
		t.Errorf("sealed anew: %s", again)
	}
	g.Step = 2
	if err := w.Check(t.Context(), "default", g, w.spec); !errors.As(err, new(*Doubt)) {
		t.Errorf("another step: %v", err)
	}
	g.Mode = jobs.ModeAsk
	if err := w.Check(t.Context(), "default", g, w.spec); err != nil {
		t.Errorf("a question to the host: %v", err)
	}
}

func TestATaskOfAnotherZoneIsAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	g := grantOf(0)
	if err := w.Check(t.Context(), "moon", g, w.spec); !errors.As(err, new(*Doubt)) {
		t.Errorf("in another zone: %v", err)
	}
	if err := w.Check(t.Context(), "default", g, w.spec); err != nil {
		t.Error(err)
	}
	if !slices.EqualFunc(w.tasks, []string{"moon", "default"}, func(k *known, zone string) bool {
		return k.zone == zone
	}) {
		t.Errorf("%d tasks are known", len(w.tasks))
	}
}

func BenchmarkCheck(b *testing.B) {
	w := newWorld(b, strict)
	g := grantOf(0)
	for b.Loop() {
		if err := w.Check(b.Context(), "default", g, w.spec); err != nil {
			b.Fatal(err)
		}
	}
}

// A job that comes before its time waits for it, and nobody is told.
func TestAnEarlyJobWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strict)
	w.now = noon.Add(-time.Hour)
	early := new(trust.EarlyError)
	if err := w.Check(t.Context(), "default", grantOf(0), w.spec); !errors.As(err, &early) ||
		!early.Begins.Equal(noon) || len(w.alerts) != 0 {
		t.Errorf("%v, %v", err, w.alerts)
	}
}

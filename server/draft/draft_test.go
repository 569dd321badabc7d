package draft_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/fault"
	"muster/server/stock"
)

var now = time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)

// setting has two hosts of different zones, and the built-in runbooks.
func setting(t *testing.T) draft.Setting {
	t.Helper()
	catalog, err := scripts.NewCatalog(nil)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fleet.New([]fleet.Host{
		{Name: "fw1", Zone: "default", Address: "10.0.0.1", Port: 22, User: "root", Fence: fleet.FenceNone},
		{Name: "fw2", Zone: "eu", Address: "10.0.0.2", Port: 22, User: "root", Fence: fleet.FenceNone},
	})
	if err != nil {
		t.Fatal(err)
	}
	return draft.Setting{Catalog: catalog, Operator: "alice", Now: now,
		Scene: stock.Scene{Stock: &stock.Stock{Inventory: inv, Version: "v1"}}}
}

// locations returns where mistakes are.
func locations(t *testing.T, wrong []error) (list []string) {
	t.Helper()
	for _, err := range wrong {
		var m *fault.Mistake
		if !errors.As(err, &m) || m.Message == "" {
			t.Fatalf("%#v has no place and no words", err)
		}
		list = append(list, m.Location)
	}
	return list
}

func TestADraftHasTheHostsOfEachZone(t *testing.T) {
	p, wrong := draft.New(api.Submit{Runbook: "exec", On: "fw*", Args: map[string]string{"cmd": "true"}}, setting(t))
	if wrong != nil {
		t.Fatal(wrong)
	}
	want := map[string][]string{"default": {"fw1"}, "eu": {"fw2"}}
	if diff := cmp.Diff(want, p.Hosts); diff != "" || p.Task.Total != 2 || p.Task.ID != "" {
		t.Errorf("%d hosts, id %q:\n%s", p.Task.Total, p.Task.ID, diff)
	}
	s := p.Task.Spec
	if s.Operator != "alice" || s.Inventory != "v1" || s.Created != jobs.MicrosOf(now) {
		t.Errorf("got %+v", s)
	}
}

// A step that asks about its host is looked at for each host: the second one lacks the label.
func TestAHostThatLacksALabelIsFound(t *testing.T) {
	in := setting(t)
	inv, err := fleet.New([]fleet.Host{
		{Name: "fw1", Zone: "default", Address: "10.0.0.1", Port: 22, User: "root", Fence: fleet.FenceNone,
			Labels: map[string]string{"x": "1"}},
		{Name: "fw2", Zone: "default", Address: "10.0.0.2", Port: 22, User: "root", Fence: fleet.FenceNone},
	})
	if err != nil {
		t.Fatal(err)
	}
	in.Scene = stock.Scene{Stock: &stock.Stock{Inventory: inv, Version: "v1"}}
	for step, want := range map[string][]string{"run: 'echo {{host.label.x}}'": {"body.on"}, "run: echo": nil,
		"upload: {content: c, to: '/tmp/{{host.label.x}}'}": {"body.on"}} {
		in.Catalog, err = scripts.NewCatalog([]scripts.Source{{File: "a.yaml",
			Data: []byte("name: a\nsteps:\n- {name: b, " + step + "}\n")}})
		if err != nil {
			t.Fatal(err)
		}
		_, wrong := draft.New(api.Submit{Runbook: "a", On: "fw*"}, in)
		if diff := cmp.Diff(want, locations(t, wrong)); diff != "" {
			t.Errorf("%s: %v\n%s", step, wrong, diff)
		}
	}
}

func TestAllMistakesOfASubmitAreReportedAtOnce(t *testing.T) {
	_, wrong := draft.New(api.Submit{Runbook: "exec", On: "nobody", Expire: "soon", Priority: "first",
		Supersedes: "a//b", Timed: api.Timed{Expect: "1ms"}}, setting(t))
	want := []string{"body.expire", "body.expect", "body.priority", "body.on", "body.args", "body.supersedes"}
	if diff := cmp.Diff(want, locations(t, wrong)); diff != "" {
		t.Errorf("places of the mistakes (-want +got):\n%s", diff)
	}
}

func TestAChainOfATaskThatCannotBeTakenBackIsRefused(t *testing.T) {
	b := api.Submit{Runbook: "exec", On: "fw1", Args: map[string]string{"cmd": "true"},
		Rollout: &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{RollBack: true}}}
	_, _, wrong := draft.NewChain(b, setting(t), func() uint16 { return 7 })
	if got := locations(t, wrong); len(got) != 1 || got[0] != "body.rollout.roll_back" {
		t.Errorf("got mistakes at %q, want one at body.rollout.roll_back", got)
	}
}

func TestARetryLeavesDrainedHostsOut(t *testing.T) {
	in := setting(t)
	first, wrong := draft.New(api.Submit{Runbook: "exec", On: "fw*", Args: map[string]string{"cmd": "true"}}, in)
	if wrong != nil {
		t.Fatal(wrong)
	}
	in.Scene.Drained = map[string]jobs.Drain{"fw2": {}}
	c := draft.Choice{Of: "0123456789", Spec: first.Task.Spec, Hosts: []string{"fw1", "fw2", "fw3"}}
	p, answer, wrong := draft.Again(api.RetryRequest{SkipMissing: true}, c, in)
	if wrong != nil || answer.LeftOut.Drained != "fw2" || answer.Skipped != "fw3" || p.Task.Total != 1 ||
		p.Task.Spec.RetryOf != c.Of {
		t.Errorf("drained %q, skipped %q, %d hosts, retry of %q, mistakes %v", answer.LeftOut.Drained,
			answer.Skipped, p.Task.Total, p.Task.Spec.RetryOf, wrong)
	}
	if _, _, wrong = draft.Again(api.RetryRequest{}, c, in); len(locations(t, wrong)) != 1 {
		t.Errorf("a host that is gone is %v, want one mistake", wrong)
	}
}

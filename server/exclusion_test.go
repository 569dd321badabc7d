package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
)

// pairs are two groups and limits of several kinds.
func pairs() (*fleet.Inventory, error) {
	list := hosts()
	list[0].Group, list[1].Group = "edge", "edge"
	return fleet.New(list,
		fleet.Limit{Name: "site/y", Max: 1},
		fleet.Limit{Name: "mirror/default", Max: 1, Zone: "default"},
		fleet.Limit{Name: "mirror/eu", Max: 5, Zone: "eu", Customer: "acme"})
}

// needy is a runbook that needs a limit.
const needy = "name: NAME\ndisruptive: true\nneeds: [mirror/NAME]\nsteps: [{name: a, run: 'true'}]\n"

func needing(names ...string) []string {
	var out []string
	for _, name := range names {
		out = append(out, strings.ReplaceAll(needy, "NAME", name))
	}
	return out
}

// guards notes which tasks go to the queue as guarded.
type guards struct {
	*queuetest.Queue
	of map[string]bool // selector to guarded
}

func (g guards) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, f func(int)) error {
	g.of[t.Spec.On] = t.Guarded
	return g.Queue.Submit(ctx, t, hosts, f)
}

func TestTasksThatMayNeedSomethingAreGuarded(t *testing.T) {
	t.Parallel()
	of := map[string]bool{}
	w := start(t, setup{inventory: pairs, wrap: func(q *queuetest.Queue) everything { return guards{q, of} }})
	w.submit(run("fw001"))      // in a group, but not disruptive
	w.submit(run("fw003"))      // of site y
	w.submit(run("vpn1"))       // nothing
	w.submit(run("vpn1,fw003")) // one of them
	body := run("fw002")        // in a group
	body.Disruptive = true      // said by the operator
	got := w.submit(body)       //
	body.On = "{name=vpn1}"     // in no group
	w.submit(body)              //
	want := map[string]bool{"fw001": false, "fw003": true, "vpn1": false, "vpn1,fw003": true, "fw002": true,
		"{name=vpn1}": false}
	if diff := cmp.Diff(want, of); diff != "" {
		t.Errorf("guarded (-want +got):\n%s", diff)
	}
	spec, err := w.queue.Spec(t.Context(), got.Task)
	if err != nil || !spec.Disruptive || !got.Disruptive || !strings.Contains(string(spec.Action), `"disruptive":true`) {
		t.Errorf("answer %+v, spec %+v, %v", got, spec, err)
	}
}

func TestANeededLimitMustBeThereAndFit(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: pairs, runbooks: needing("default", "eu", "none")})
	for _, c := range []struct{ runbook, on, want string }{
		{"default", "fw001", ""},
		{"eu", "fw003", ""},
		{"none", "fw001", "body.runbook: it needs the limit mirror/none, which is not defined " +
			"(there are mirror/default, mirror/eu, site/y): define it under `limits` in the inventory"},
		{"default", "fw*", "body.on: the limit mirror/default lives in zone default, where 1 of 3 hosts are not: fw003"},
		{"eu", "fw003,vpn1", "body.on: the limit mirror/eu is of customer acme, which 1 of 2 hosts are not of: vpn1"},
	} {
		var p problem
		res := w.call("POST", "/v1/tasks", api.Submit{Runbook: c.runbook, On: c.on}, &p)
		if c.want == "" && res.StatusCode != http.StatusCreated || !strings.Contains(p.words(), c.want) {
			t.Errorf("%s on %s: %s %s, want %q", c.runbook, c.on, res.Status, p.words(), c.want)
		}
	}
	var books api.RunbookList
	w.call("GET", "/v1/runbooks", nil, &books)
	if b := books.Runbooks[0]; b.Name != "default" || !cmp.Equal(b.Needs, []string{"mirror/default"}) || !b.Disruptive {
		t.Errorf("runbook: %+v", b)
	}
}

// take takes what is due in a zone and keeps it.
func (w *world) take(zone string) []jobs.Grant {
	w.t.Helper()
	var out []jobs.Grant
	for {
		n := w.steps.Add(1)
		reply, err := w.queue.Step(w.t.Context(), zone, jobs.Step{Node: "n2", Slot: fmt.Sprint(n),
			Request: fmt.Sprint(n), Want: 100})
		if err != nil {
			w.t.Fatal(err)
		}
		out = append(out, reply.Jobs...)
		if len(reply.Jobs) == 0 && reply.Status != jobs.StatusMore {
			return out
		}
	}
}

// end ends a job that was taken.
func (w *world) end(zone string, g jobs.Grant, o jobs.Outcome) {
	w.t.Helper()
	n := w.steps.Add(1)
	_, err := w.queue.Step(w.t.Context(), zone, jobs.Step{Node: "n2", Slot: fmt.Sprint(n), Request: fmt.Sprint(n),
		Results: []jobs.Result{{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: o, Error: "the line broke"}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAGroupIsFrozenUntilAPersonClearsIt(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg, inventory: pairs})
		list := func() []jobs.Group {
			t.Helper()
			var l api.GroupList
			w.call("GET", "/v1/groups", nil, &l)
			return l.Groups
		}
		if got := list(); got == nil || len(got) != 0 {
			t.Errorf("groups before all: %+v, want an empty list", got)
		}
		body := run("fw001,fw002")
		body.Disruptive = true
		w.submit(body)
		first := w.take("default")
		if len(first) != 1 {
			t.Fatalf("%d members of the group are disturbed, want 1", len(first))
		}
		if g := list(); len(g) != 1 || g[0].Name != "edge" || g[0].Holder != first[0].Job || g[0].Frozen != "" ||
			!cmp.Equal(g[0].Hosts, []string{"fw001", "fw002"}) {
			t.Errorf("groups in use: %+v", g)
		}
		var other jobs.JobInfo
		for _, j := range w.jobsOf(first[0].Job.Task()) {
			if j.ID != first[0].Job {
				w.call("GET", "/v1/jobs/"+string(j.ID), nil, &other)
			}
		}
		if other.State != jobs.Blocked || other.Waits != "group/edge" {
			t.Errorf("the other one is %s and waits for %q", other.State, other.Waits)
		}
		w.end("default", first[0], jobs.Unknown)
		if g := list(); len(g) != 1 || g[0].Frozen == "" || g[0].Job != first[0].Job || g[0].Since.IsZero() {
			t.Errorf("groups after an unknown end: %+v", g)
		}
		if more := w.take("default"); len(more) != 0 {
			t.Errorf("%d jobs start in a frozen group", len(more))
		}
		var did jobs.Cleared
		w.call("POST", "/v1/groups/edge/clear", why("fw001 is well"), &did)
		if did.Already || did.Job != first[0].Job || did.Zone != "default" || did.Was == "" {
			t.Errorf("clear answers %+v", did)
		}
		if second := w.take("default"); len(second) != 1 {
			t.Errorf("%d jobs start after the clear, want 1", len(second))
		}
	})
}

func TestClearOfAGroupThatIsWell(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: pairs})
	var did jobs.Cleared
	res := w.call("POST", "/v1/groups/edge/clear", why("x"), &did)
	if want := (jobs.Cleared{Group: "edge", Zone: "default", Already: true}); res.StatusCode != 200 || did != want {
		t.Errorf("%s %+v, want %+v", res.Status, did, want)
	}
	var p problem
	if res := w.call("POST", "/v1/groups/egde/clear", why("x"), &p); res.StatusCode != 404 {
		t.Errorf("of no group: %s %s", res.Status, p.words())
	}
}

func TestLimitsAreListed(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: pairs})
	w.submit(run("fw003"))
	taken := w.take("eu")
	var l api.LimitList
	w.call("GET", "/v1/limits", nil, &l)
	want := []jobs.Limit{
		{Name: "mirror/default", Zone: "default", Max: 1, Holders: []jobs.ID{}},
		{Name: "mirror/eu", Zone: "eu", Max: 5, Holders: []jobs.ID{}},
		{Name: "site/y", Zone: "eu", Max: 1, Used: 1, Holders: []jobs.ID{taken[0].Job}},
	}
	if diff := cmp.Diff(want, l.Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestALimitHoldsBackWhatIsTooMuch(t *testing.T) {
	t.Parallel()
	inv := func() (*fleet.Inventory, error) {
		list := many(20)
		for i := range list {
			list[i].Labels = map[string]string{"site": "x"}
		}
		return fleet.New(list, fleet.Limit{Name: "site/x", Max: 3})
	}
	w := start(t, setup{inventory: inv})
	w.submit(run("all"))
	if n := len(w.take("default")); n != 3 {
		t.Errorf("%d jobs at a time, want 3", n)
	}
}

package server_test

import (
	"fmt"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// hand takes all that is due in the zone, and ends one host's job as it is told; others run.
func (w *world) hand(slot, host string, r jobs.Result) {
	w.t.Helper()
	step := jobs.Step{Node: "n1", Slot: slot, Want: 100, Request: fmt.Sprint(w.steps.Add(1))}
	reply, err := w.queue.Step(w.t.Context(), "default", step)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range reply.Jobs {
		if g.Job.Host() == host {
			r.Job, r.Token = g.Job, g.Token
			step.Results = []jobs.Result{r}
		}
	}
	step.Want, step.Request = 0, fmt.Sprint(w.steps.Add(1))
	if _, err := w.queue.Step(w.t.Context(), "default", step); err != nil {
		w.t.Fatal(err)
	}
}

const (
	ownBook = "name: own\nundo: own-back\nsteps: [{name: a, run: 'true'}]\n"
	ownBack = "name: own-back\narguments: {of: {type: string, description: x}}\n" +
		"steps: [{name: a, run: 'true'}]\n"
)

// A task and a chain say what they wait for: a host that an earlier job has left locked, a
// group that it has frozen.
func TestATaskAndAChainSayWhatTheyWaitFor(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: pairs, runbooks: []string{ownBook, ownBack}})
	w.manned()
	body := run("fw001")
	body.Disruptive = true
	doubt := w.submit(body)
	w.hand("1", "fw001", jobs.Result{Kind: jobs.KindEnd, Outcome: jobs.Unknown, KeepLock: true,
		Error: "cancel requested, still running: bob: no"})
	body.On = "fw002"
	pair := w.submit(body)
	body = api.Submit{Runbook: "own", On: "fw001",
		Rollout: &jobs.RolloutAsk{ChainAsk: jobs.ChainAsk{RollBack: true}}}
	chain := w.submit(body)
	w.hand("2", "", jobs.Result{})

	locked := []string{"its host stays locked until ", "job " + string(doubt.Task) + ":fw001 ended unknown",
		"still running: bob: no"}
	frozen := []string{"group edge is frozen since 20", "muster group clear edge"}
	check := func(of string, list []jobs.Lack, hosts string, want []string) {
		t.Helper()
		text, got := "", []string{}
		for _, l := range list {
			text += l.Why + "\n"
			got = append(got, l.Hosts)
		}
		if strings.Join(got, ",") != hosts {
			t.Errorf("%s: hosts %v wait, want %s", of, got, hosts)
		}
		for _, words := range want {
			if !strings.Contains(text, words) {
				t.Errorf("%s waits for %q, want %q", of, text, words)
			}
		}
	}
	var l api.LackList
	w.call("GET", "/v1/tasks/"+string(pair.Task)+"/waits", nil, &l)
	check("the other of the pair", l.Waits, "fw002", frozen)
	var sum api.Summary
	w.call("GET", "/v1/tasks/"+string(pair.Task)+"/summary", nil, &sum)
	check("its summary", sum.Waits, "fw002", frozen)
	var i jobs.ChainInfo
	w.call("GET", "/v1/chains/"+string(chain.Task), nil, &i)
	check("the chain", i.Waits, "fw001", locked)
	l = api.LackList{}
	w.call("GET", "/v1/tasks/"+string(doubt.Task)+"/waits", nil, &l)
	check("who runs", l.Waits, "", nil)
	var p problem
	if res := w.call("GET", "/v1/tasks/nonsense/waits", nil, &p); res.StatusCode != 422 {
		t.Errorf("nonsense: %s %s", res.Status, p.words())
	}
}

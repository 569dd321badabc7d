package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/jobs"
)

const gatedBook = `
name: gated
steps: [{name: a, check: ls}, {name: ask, gate: {question: 'Well?'}}, {name: b, run: ls}]
`

// stand has the jobs of some hosts come to their gate; others run.
func (w *world) stand(hosts ...string) {
	w.t.Helper()
	now := jobs.MicrosOf(time.Now())
	step := jobs.Step{Node: "n1", Slot: "1", Want: 100, Request: fmt.Sprint(w.steps.Add(1))}
	reply, err := w.queue.Step(w.t.Context(), "default", step)
	if err != nil {
		w.t.Fatal(err)
	}
	step.Want, step.Request = 0, fmt.Sprint(w.steps.Add(1))
	for _, g := range reply.Jobs {
		if strings.Contains(strings.Join(hosts, " "), g.Job.Host()) {
			step.Results = append(step.Results, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindWait, Step: 1,
				Delay: time.Hour, Saved: fmt.Sprintf(`{"probe":{"since":%d,"until":%d,"gate":{"name":"ask",`+
					`"question":"Well?"}}}`, now, now.Add(time.Hour))})
		}
	}
	if _, err := w.queue.Step(w.t.Context(), "default", step); err != nil {
		w.t.Fatal(err)
	}
}

func TestGatesAreListedAndAnswered(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{gatedBook}})
	body := run("fw001,fw002,vpn1")
	body.Runbook, body.Args = "gated", nil
	task := w.submit(body)
	if !task.Gates {
		t.Errorf("submit answers %+v", task)
	}
	w.submit(run("fw001")) // has no gate
	w.stand("fw001", "fw002")
	id := string(task.Task)
	gates := func(question string) (hosts []string) {
		t.Helper()
		var l api.GateList
		w.call("GET", "/v1/gates"+question, nil, &l)
		for _, one := range l.Gates {
			hosts = append(hosts, one.Host)
			if one.Name != "ask" || one.Question != "Well?" || one.Runbook != "gated" || one.Task != task.Task ||
				one.Until.IsZero() || one.State != jobs.Waiting {
				t.Errorf("%+v", one)
			}
		}
		if l.Total != len(hosts) {
			t.Errorf("total %d of %v", l.Total, hosts)
		}
		return hosts
	}
	for question, want := range map[string][]string{"": {"fw001", "fw002"}, "?task=" + id: {"fw001", "fw002"},
		"?on=fw002": {"fw002"}, "?on=vpn1": nil} {
		if got := gates(question); !cmp.Equal(got, want) {
			t.Errorf("%q: %v, want %v", question, got, want)
		}
	}
	var sum api.Summary
	if w.call("GET", "/v1/tasks/"+id+"/summary", nil, &sum); sum.AtGates != 2 {
		t.Errorf("%+v", sum)
	}

	path := "/v1/tasks/" + id + "/gates/"
	var did jobs.Answers
	ask := api.GateRequest{OrderRequest: why("it is"), Hosts: []string{"fw001", "vpn1"}}
	w.call("POST", path+"open", ask, &did)
	want := jobs.Answers{Task: task.Task, Stand: []jobs.ID{jobs.NewID(task.Task, "fw002")},
		Answered: []jobs.Answered{{Job: jobs.NewID(task.Task, "fw001"), Step: 1, Name: "ask", Word: jobs.GateOpen,
			Note: "opened by alice (unproven): it is"}},
		Elsewhere: []jobs.Elsewhere{{Job: jobs.NewID(task.Task, "vpn1"), State: jobs.Queued}}}
	if diff := cmp.Diff(want, did); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if w.call("POST", path+"refuse", why("no"), &did); len(did.Answered) != 2 || !did.Answered[0].Already ||
		did.Answered[1].Word != jobs.GateRefuse || did.Rest != 1 {
		t.Errorf("all of the task: %+v", did)
	}
	var j jobs.JobInfo
	if w.call("GET", "/v1/jobs/"+id+":fw002", nil, &j); j.Gate == nil ||
		j.Gate.Answer != "refused by alice (unproven): no" {
		t.Errorf("%+v", j.Gate)
	}
}

func TestBadAnswersToGatesAreRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{runbooks: []string{gatedBook}})
	task := string(w.submit(run("fw001")).Task)
	for _, c := range []struct {
		path, body string
		code       int
		want       string
	}{
		{"/v1/tasks/" + task + "/gates/open", `{}`, 422, "body.reason"},
		{"/v1/tasks/" + task + "/gates/refuse", `{"reason":" "}`, 422, "body.reason"},
		{"/v1/tasks/x/gates/open", `{"reason":"a"}`, 422, "path.task"},
		{"/v1/tasks/" + task + "/gates/open", `{"reason":"a","jobs":[]}`, 422, "body.jobs"},
		{"/v1/tasks/" + task + "/gates/open", `{"reason":"a","jobs":["0000000009:fw001"]}`, 422, "of another task"},
		{"/v1/tasks/" + task + "/gates/open", `{"reason":"a","hosts":["fw003"]}`, 404, "no job on fw003"},
		{"/v1/tasks/0000000009/gates/open", `{"reason":"a"}`, 404, "0000000009"},
	} {
		var p problem
		if res := w.call("POST", c.path, c.body, &p); res.StatusCode != c.code || !strings.Contains(p.words(), c.want) {
			t.Errorf("%s %s: %s %s, want %d %s", c.path, c.body, res.Status, p.words(), c.code, c.want)
		}
	}
	for question, want := range map[string]string{"?task=x": "query.task", "?on=nobody": "query.on",
		"?task=0000000009": "0000000009"} {
		var p problem
		if w.call("GET", "/v1/gates"+question, nil, &p); !strings.Contains(p.words(), want) {
			t.Errorf("%s: %s", question, p.words())
		}
	}
}

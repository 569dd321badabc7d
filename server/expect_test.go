package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs"
)

// Ten times `true` say nothing of `sleep 12`.
func TestAnEstimateIsOfTheArgumentsToo(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	text, _ := nights()
	w.agreed(text)
	quick := api.Submit{Runbook: "exec", On: "fw001", As: "alice", DryRun: true,
		Args: map[string]string{"cmd": "true"}, Timed: api.Timed{Window: true}}
	refused := func(b api.Submit, want string) {
		t.Helper()
		var p problem
		res := w.call("POST", "/v1/tasks", b, &p)
		if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.words(), want) {
			t.Errorf("%s %s, want %q", res.Status, p.words(), want)
		}
	}
	refused(quick, "nobody knows how long exec takes with these arguments on 1 of 1 hosts: fw001")
	probe := quick
	probe.Window = false
	field := jobs.EstimateField(w.dry(probe).Ran.Work, hosts()[0])
	learnt := map[string]string{field: `{"p50_ns":1000000000,"p90_ns":1000000000,"n":10}`}
	if err := w.queue.SaveEstimates(t.Context(), learnt); err != nil {
		t.Fatal(err)
	}
	if got := w.dry(quick).Windows; got == nil || got.Seconds != 1 {
		t.Errorf("what it took ten times: %+v", got)
	}
	slow := quick
	slow.Args = map[string]string{"cmd": "sleep 12"}
	refused(slow, "say how long it takes with --expect")
	slow.Expect = "soon"
	refused(slow, `body.expect: "soon": want a time from 1s to 168h`)
	slow.Expect = "12s"
	if got := w.dry(slow).Windows; got == nil || got.Seconds != 12 {
		t.Errorf("what was said: %+v", got)
	}
}

// The estimate that let a task into a window may be gone when somebody retries the task.
func TestARetryThatNobodyKnowsAnyMoreCanBeToldHowLongItTakes(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	text, _ := nights()
	w.agreed(text)
	order := api.Submit{Runbook: "exec", On: "fw001", As: "alice",
		Args: map[string]string{"cmd": "true"}}
	field := jobs.EstimateField(w.dry(order).Ran.Work, hosts()[0])
	learnt := map[string]string{field: `{"p50_ns":1000000000,"p90_ns":1000000000,"n":10}`}
	if err := w.queue.ReplaceEstimates(t.Context(), learnt); err != nil {
		t.Fatal(err)
	}
	order.Window = true
	old := string(w.submit(order).Task)
	if res := w.call("POST", "/v1/tasks/"+old+"/cancel", api.CancelRequest{}, nil); res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	if err := w.queue.ReplaceEstimates(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	ask := api.RetryRequest{Outcomes: []jobs.Outcome{jobs.Cancelled}}
	for said, want := range map[string]string{"": "body.expect: nobody knows how long exec takes",
		"soon": `body.expect: "soon": want a time from 1s to 168h`} {
		var p problem
		ask.Expect = said
		res := w.call("POST", "/v1/tasks/"+old+"/retry", ask, &p)
		if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(p.words(), want) {
			t.Errorf("expect %q: %s %s, want %q", said, res.Status, p.words(), want)
		}
	}
	var first, second api.Retried
	ask.Expect = "12s"
	res := w.call("POST", "/v1/tasks/"+old+"/retry", ask, &first)
	if res.StatusCode != http.StatusCreated || first.Windows == nil || first.Windows.Seconds != 12 {
		t.Fatalf("%s %+v", res.Status, first.Windows)
	}
	// The --expect of a task holds for its own retry.
	path := "/v1/tasks/" + string(first.Task)
	if res := w.call("POST", path+"/cancel", api.CancelRequest{}, nil); res.StatusCode != 200 {
		t.Fatal(res.Status)
	}
	ask.Expect = ""
	res = w.call("POST", path+"/retry", ask, &second)
	if res.StatusCode != http.StatusCreated || second.Windows == nil || second.Windows.Seconds != 12 {
		t.Errorf("of that one: %s %+v", res.Status, second.Windows)
	}
}

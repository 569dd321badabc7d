package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/trace"
	"muster/server"
	"muster/server/traces"
	"muster/testkit/otlptest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

const callers = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// traced is a server that sends traces of bad ends, and of callers that keep theirs.
func traced(t *testing.T, with setup) (*world, *otlptest.Collector) {
	t.Helper()
	c := otlptest.Start(t)
	redis := redistest.StartServer(t).Config()
	with.redis, with.history = &redis, openHistory(t, sqltest.SQLite(t))
	with.conf.Traces = traces.Config{Endpoint: c.URL, Timeout: 30 * time.Second}
	return start(t, with), c
}

// A submit with a traceparent and its jobs are linked traces, made of the times in history.
func TestASubmitAndItsJobsAreLinkedTraces(t *testing.T) {
	t.Parallel()
	w, c := traced(t, setup{})
	out := w.submitBy(run("fw001,fw002"), http.Header{"Traceparent": {callers}})
	if out.Ran == nil || out.Ran.Trace != callers {
		t.Errorf("the task has the trace %+v", out.Ran)
	}
	w.work("default", func(host string) jobs.Result {
		r := succeed(host)
		if host == "fw002" {
			r.Outcome, r.Class = jobs.Failed, jobs.ClassUser
		}
		return r
	})
	list := c.Until("two jobs and the task", func(list []otlptest.Span) bool {
		return slices.ContainsFunc(list, named("task exec")) && len(slices.DeleteFunc(slices.Clone(list),
			func(s otlptest.Span) bool { return s.Name != "job exec" })) == 2
	})
	submit := trace.Submit(out.Task, callers)
	link := submit.Trace.String() + "-" + submit.Span.String()
	for _, host := range []string{"fw001", "fw002"} {
		id := jobs.NewID(out.Task, host)
		i := slices.IndexFunc(list, func(s otlptest.Span) bool {
			return s.Name == "job exec" && s.Attributes["muster.host"] == host
		})
		s := list[i]
		if s.Trace != trace.OfJob(id).String() || !slices.Equal(s.Links, []string{link}) ||
			s.Kind != "SPAN_KIND_CONSUMER" || s.Attributes["messaging.message.id"] != string(id) {
			t.Errorf("job %s is %+v", id, s)
		}
		if !slices.ContainsFunc(list, func(a otlptest.Span) bool {
			return a.Name == "attempt" && a.Parent == s.ID && strings.HasPrefix(fmt.Sprint(a.Attributes["muster.node"]), "n1") &&
				!a.Start.Before(s.Start) && !a.End.After(s.End)
		}) {
			t.Errorf("job %s has no attempt: %+v", id, list)
		}
	}
	s := list[slices.IndexFunc(list, named("submit exec"))]
	if s.Trace+"-"+s.ID != link || s.Parent != callers[36:52] || s.Kind != "SPAN_KIND_PRODUCER" {
		t.Errorf("the submit is %+v, want %s", s, link)
	}
	var j api.JobDetail
	w.call("GET", "/v1/jobs/"+string(out.Task)+":fw001", nil, &j)
	if j.Of == nil || j.Of.Traces == nil || j.Of.Traces.Job != trace.OfJob(j.ID).String() ||
		j.Of.Traces.Task != callers[3:35] || j.Of.Traces.Sent == nil || !*j.Of.Traces.Sent {
		t.Errorf("the job shows %+v", j.Of)
	}
	past, err := w.queue.Task(t.Context(), out.Task)
	if err != nil || past.Ran.Trace != callers {
		t.Errorf("the task has %+v, %v", past.Ran, err)
	}
}

// submitBy submits a task with more headers.
func (w *world) submitBy(body api.Submit, header http.Header) (out api.Submitted) {
	w.t.Helper()
	res, text := w.raw("POST", "/v1/tasks", body, header)
	if err := json.Unmarshal(text, &out); err != nil || res.StatusCode != http.StatusCreated {
		w.t.Fatalf("submit: %s, %v: %s", res.Status, err, text)
	}
	return out
}

func named(name string) func(otlptest.Span) bool {
	return func(s otlptest.Span) bool { return s.Name == name }
}

// Without a sample only what ended badly is sent; what is no traceparent is none; and whoever may
// not see a job learns nothing of its trace.
func TestOnlyBadEndsAreSentAndShownToThoseWhoSeeThem(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	w, c := traced(t, setup{inventory: fixed(twoCustomers()),
		more: func(d *server.Deps) { d.Policy = policy }})
	admin, acme := bearing(w.token("admin")), bearing(w.token("viewer-acme"))
	odd := admin.Clone()
	odd.Set("Traceparent", "nonsense")
	good, failed := w.submitBy(run("fw-a1"), odd), w.submitBy(run("fw-b1"), admin)
	if good.Ran.Trace != "" {
		t.Errorf("nonsense became %q", good.Ran.Trace)
	}
	w.work("default", func(host string) jobs.Result {
		r := succeed(host)
		if host == "fw-b1" {
			r.Outcome = jobs.Unknown
		}
		return r
	})
	list := c.Until("the unknown job and its task", func(list []otlptest.Span) bool {
		return slices.ContainsFunc(list, named("job exec")) && slices.ContainsFunc(list, named("task exec"))
	})
	for _, s := range list {
		if s.Attributes["muster.task"] == string(good.Task) {
			t.Errorf("%s was sent", s.Name)
		}
	}
	id := string(failed.Task) + ":fw-b1"
	res, body := w.raw("GET", "/v1/jobs/"+id, nil, acme)
	if res.StatusCode != http.StatusNotFound || strings.Contains(string(body), trace.OfJob(jobs.ID(id)).String()) {
		t.Errorf("somebody without rights gets %s: %s", res.Status, body)
	}
	res, body = w.raw("GET", "/v1/jobs/"+string(good.Task)+":fw-a1", nil, acme)
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), `"sent":false`) {
		t.Errorf("somebody with rights gets %s: %s", res.Status, body)
	}
}

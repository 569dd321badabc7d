package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// takes hands out the job on a host, as to a worker.
func (w *world) takes(zone string, n int) []jobs.Grant {
	w.t.Helper()
	reply, err := w.queue.Step(w.t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Want: n,
		Request: fmt.Sprint(w.steps.Add(1))})
	if err != nil || len(reply.Jobs) != n {
		w.t.Fatalf("%d jobs were handed out, want %d: %v", len(reply.Jobs), n, err)
	}
	return reply.Jobs
}

// finish ends jobs as a worker does.
func (w *world) finish(zone string, results ...jobs.Result) {
	w.t.Helper()
	if _, err := w.queue.Step(w.t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Results: results,
		Request: fmt.Sprint(w.steps.Add(1))}); err != nil {
		w.t.Fatal(err)
	}
}

// says lets the host of a running job say something.
func (w *world) says(zone string, g jobs.Grant, end int64, data string) {
	w.t.Helper()
	stale, err := w.queue.Speak(w.t.Context(), zone, []jobs.Speech{{Job: g.Job, Token: g.Token, End: end,
		Data: []byte(data)}})
	if err != nil || len(stale) > 0 {
		w.t.Fatalf("stale %v, %v", stale, err)
	}
}

func result(g jobs.Grant, output string) jobs.Result {
	return jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd, Outcome: jobs.Succeeded,
		ExitCode: new(int), Said: jobs.Said{Output: []byte(output)}}
}

func TestOutputIsReadFromAPlaceOn(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	w.submit(run("vpn1"))
	g := w.takes("eu", 1)[0]
	path := "/v1/jobs/" + string(g.Job) + "/output"
	want := func(question, body, next, ended string) {
		t.Helper()
		res, text := w.raw("GET", path+question, nil, nil)
		if res.StatusCode != 200 || string(text) != body || res.Header.Get("Muster-Next") != next ||
			res.Header.Get("Muster-Ended") != ended {
			t.Errorf("%s: %s, %q, next %s, ended %s; want %q, %s, %s", question, res.Status, text,
				res.Header.Get("Muster-Next"), res.Header.Get("Muster-Ended"), body, next, ended)
		}
	}
	want("", "", "0", "false")
	w.says("eu", g, 6, "first\n")
	want("", "first\n", "6", "false")
	want("?from=2", "rst\n", "6", "false")
	want("?from=6", "", "6", "false")
	w.says("eu", g, 2006, "late")
	want("?from=0", "first\n… 2.0 kB left out …\nlate", "2006", "false")
	want("?from=6", "… 2.0 kB left out …\nlate", "2006", "false")

	// A client that waits gets the new output.
	answer := make(chan string)
	go func() {
		res, text, err := w.try("GET", path+"?from=2006&wait=1m", nil, nil)
		if err != nil {
			answer <- err.Error()
			return
		}
		answer <- string(text) + res.Header.Get("Muster-Ended")
	}()
	r := result(g, "first\nlate\n")
	r.Gap = jobs.Gap{At: 6, Left: 1996}
	w.finish("eu", r)
	if got := <-answer; got != "\ntrue" {
		t.Errorf("the one who waited got %q", got)
	}
	want("", "first\n… 2.0 kB left out …\nlate\n", "2007", "true")
	want("?from=2005&wait=1m", "e\n", "2007", "true")
	want("?from=9999&wait=1m", "", "9999", "true")

	res, text := w.raw("GET", path+"?from=-1&wait=2h", nil, nil)
	if res.StatusCode != 422 || !strings.Contains(string(text), "query.") {
		t.Errorf("%s %s", res.Status, text)
	}
}

// told is the next event of a stream of output.
type told struct {
	id, name string
	api.Said
	Outcome jobs.Outcome
	State   jobs.TaskState
	Groups  []api.Alike
}

func (e *ear) told() told {
	e.w.t.Helper()
	for {
		text := e.next()
		if text == "" {
			return told{name: "closed"}
		}
		if strings.HasPrefix(text, ":") {
			continue
		}
		var x told
		for line := range strings.SplitSeq(text, "\n") {
			field, value, _ := strings.Cut(line, ": ")
			switch field {
			case "id":
				x.id = value
			case "event":
				x.name = value
			case "data":
				if err := json.Unmarshal([]byte(value), &x); err != nil {
					e.w.t.Fatalf("%q: %v", value, err)
				}
			}
		}
		return x
	}
}

// short is an event in a few words.
func (x told) short() string {
	switch x.name {
	case api.EventSaid:
		return fmt.Sprintf("%s %d %s", x.Host, x.At, x.Data)
	case api.EventEnded:
		return x.Host + " " + string(x.Outcome)
	case api.EventOver:
		return "over " + string(x.State)
	}
	return x.name
}

func (e *ear) want(list ...string) (last told) {
	e.w.t.Helper()
	for _, want := range list {
		last = e.told()
		if got := last.short(); got != want {
			e.w.t.Fatalf("heard %q, want %q", got, want)
		}
	}
	return last
}

func TestAllHostsOfATaskAreHeard(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("all")).Task
	path := "/v1/tasks/" + string(task) + "/output"
	list := w.takes("default", 2)
	w.says("default", list[0], 3, "abc")
	w.finish("default", result(list[1], "all of it"))

	e := w.listenTo(path, nil)
	first, second := list[0].Job.Host(), list[1].Job.Host()
	e.want(second+" 0 all of it", second+" succeeded", first+" 0 abc")

	w.says("default", list[0], 7, "defg")
	e.want(first + " 3 defg")
	w.finish("default", result(list[0], "abcdefghi"))
	id := e.want(first+" 7 hi", first+" succeeded").id
	if !strings.HasPrefix(id, "default=") {
		t.Errorf("id %q", id)
	}
	e.close()

	// A client that returns gets the ends that it may have missed, without those of long ago.
	eu := w.takes("eu", 2)
	w.says("eu", eu[0], 1, "x")
	e = w.listenTo(path, http.Header{"Last-Event-Id": {id}})
	seen := map[string]bool{}
	for range 5 {
		seen[e.told().short()] = true
	}
	if !seen[first+" 0 abcdefghi"] || !seen[first+" succeeded"] || !seen[eu[0].Job.Host()+" 0 x"] {
		t.Errorf("who came back heard %v", seen)
	}
	w.finish("eu", result(eu[0], "x"))
	e.want(eu[0].Job.Host() + " succeeded")
	w.finish("eu", result(eu[1], ""))
	e.want(eu[1].Job.Host()+" succeeded", "over ended", "closed")

	e = w.listenTo(path, http.Header{"Last-Event-Id": {"default=99999999999999-0,eu=99999999999999-0"}})
	e.want("over ended", "closed")
}

func TestOutputCanBeReadWithoutFollowing(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	task := w.submit(run("fw*")).Task
	g := w.takes("default", 1)[0]
	w.says("default", g, 1, "x")
	e := w.listenTo("/v1/tasks/"+string(task)+"/output?follow=false", nil)
	e.want(g.Job.Host()+" 0 x", "over running", "closed")
}

// deafTo is a queue that loses the events of a task.
type deafTo struct{ *queuetest.Queue }

func (d deafTo) Events(ctx context.Context, zone, after string, limit int, wait time.Duration) (
	[]jobs.Happening, string, error) {
	_, last, err := d.Queue.Events(ctx, zone, after, limit, wait)
	return nil, last, err
}

func TestWhatEventsLackIsFoundAtTheEnd(t *testing.T) {
	t.Parallel()
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { return deafTo{q} }})
	task := w.submit(run("fw001,fw002")).Task
	e := w.listenTo("/v1/tasks/"+string(task)+"/output", nil)
	e.next() // the stream is open
	w.work("default", succeed)
	// Which host comes first is not said: jobs may end between two looks.
	heard := map[string]int{}
	for i := range 4 {
		heard[e.told().short()] = i + 1
	}
	for _, host := range []string{"fw001", "fw002"} {
		said, ended := heard[host+" 0 fine\n"], heard[host+" succeeded"]
		if said == 0 || ended < said {
			t.Errorf("%s is not told whole, its output first: heard %v", host, heard)
		}
	}
	e.want("over ended")
}

// A queue that is away for a moment loses nothing that was said.
type shaky struct {
	*queuetest.Queue
	fail func(call string) error
}

func (s shaky) Listen(ctx context.Context, zone string, list map[jobs.ID]*read.Heard) (
	map[jobs.ID]jobs.Output, error) {
	if err := s.fail("listen " + zone); err != nil {
		return nil, err
	}
	return s.Queue.Listen(ctx, zone, list)
}

func TestNothingIsLostWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	n := 0
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything {
		return shaky{q, func(call string) error {
			if n++; call == "listen eu" && n < 4 {
				return errBroken
			}
			return nil
		}}
	}})
	task := w.submit(run("all")).Task
	w.work("default", succeed)
	w.work("eu", succeed)
	e := w.listenTo("/v1/tasks/"+string(task)+"/output", nil)
	count := map[string]int{}
	for {
		x := e.told()
		if x.name == api.EventOver {
			break
		}
		count[x.short()]++
	}
	want := map[string]int{}
	for _, h := range hosts() {
		want[h.Name+" 0 fine\n"], want[h.Name+" succeeded"] = 1, 1
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}

func TestFoldsAreFollowed(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(many(30))})
	task := w.submit(run("all")).Task
	list := w.takes("default", 30)
	e := w.listenTo("/v1/tasks/"+string(task)+"/summaries?excerpt=3", nil)
	if x := e.told(); x.name != api.EventSummary || len(x.Groups) != 0 {
		t.Errorf("at first: %+v", x)
	}
	var results []jobs.Result
	for i, g := range list {
		results = append(results, result(g, "version "+fmt.Sprint(i/20)))
	}
	w.finish("default", results[:20]...)
	if x := e.told(); len(x.Groups) != 1 || x.Groups[0].Hosts != "h[0000-0019]" || x.Groups[0].Count != 20 ||
		string(x.Groups[0].Output) != "ver" || x.Groups[0].LeftOut != 6 {
		t.Errorf("then: %+v", x)
	}
	w.finish("default", results[20:]...)
	x := e.told()
	if len(x.Groups) != 2 || x.Groups[1].Hosts != "h[0020-0029]" {
		t.Errorf("at last: %+v", x)
	}
	e.want("over ended", "closed")
}

func TestStreamsOfTasksRefuseWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for _, c := range []struct {
		path, last string
		want       int
	}{
		{"/v1/tasks/x/output", "", 422}, {"/v1/tasks/0000000000/output", "", 404},
		{"/v1/tasks/x/summaries", "", 422}, {"/v1/tasks/0000000000/summaries", "", 404},
		{"/v1/tasks/0000000000/output", "no place", 422},
		{"/v1/tasks/0000000000/summaries?excerpt=99999999", "", 422},
	} {
		res, text := w.raw("GET", c.path, nil, http.Header{"Last-Event-Id": {c.last}})
		if res.StatusCode != c.want {
			t.Errorf("%s: %s %s", c.path, res.Status, text)
		}
	}
}

// From Redis to the answer: outputs of 1 kB each.
func BenchmarkSummary20000(b *testing.B) {
	cfg := redistest.StartServer(b).Config()
	w := start(b, setup{redis: &cfg, inventory: fixed(many(20_000))})
	task := w.submit(run("all")).Task
	w.work("default", func(host string) jobs.Result {
		said := bytes.Repeat([]byte(host[len(host)-1:]), 1000)
		return jobs.Result{Outcome: jobs.Succeeded, Said: jobs.Said{Output: said}}
	})
	for b.Loop() {
		var s api.Summary
		w.call("GET", "/v1/tasks/"+string(task)+"/summary", nil, &s)
		if len(s.Groups) != 10 {
			b.Fatalf("%d groups", len(s.Groups))
		}
	}
}

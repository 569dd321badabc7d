package server_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/jobs"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

func (w *world) retry(of jobs.TaskID, r api.RetryRequest) (int, api.Retried) {
	w.t.Helper()
	var got api.Retried
	res := w.call("POST", "/v1/tasks/"+string(of)+"/retry", r, &got)
	return res.StatusCode, got
}

// A person repeats a command, or two people give the same one: the work is done once.
func TestARetryThatIsOrderedTwiceIsOne(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	old := w.submit(run("fw*")).Task
	w.work("default", ways)
	w.work("eu", ways)
	failed := api.RetryRequest{OrderRequest: api.OrderRequest{As: "bob"}}
	code, first := w.retry(old, failed)
	if code != http.StatusCreated || first.Total != 1 || first.Already || first.Earlier != nil {
		t.Fatalf("the first: %d %+v", code, first)
	}
	w.work("default", ways)
	code, again := w.retry(old, api.RetryRequest{ID: "0123456789"})
	want := []api.Earlier{{Task: first.Task, Operator: "bob", At: again.Earlier[0].At, Hosts: "fw002",
		Count: 1, Outcomes: jobs.Counts{jobs.Failed: 1}}}
	if diff := cmp.Diff(want, again.Earlier); code != 200 || !again.Already || again.Task != first.Task ||
		again.State != jobs.TaskEnded || diff != "" || again.Earlier[0].At.IsZero() {
		t.Errorf("once more: %d %+v\n%s", code, again, diff)
	}
	if _, err := w.queue.Task(t.Context(), "0123456789"); err == nil {
		t.Error("it made a task")
	}

	// Nobody has retried the jobs with another end yet.
	more := api.RetryRequest{Outcomes: []jobs.Outcome{jobs.Failed, jobs.Unreachable}, DryRun: true}
	code, dry := w.retry(old, more)
	if code != 200 || dry.Hosts != "fw003" || dry.Already || len(dry.Earlier) != 1 || dry.Task != "" {
		t.Errorf("dry run: %d %+v", code, dry)
	}
	more.DryRun = false
	code, second := w.retry(old, more)
	if code != 201 || second.On != "fw003" || len(second.Earlier) != 1 || second.Earlier[0].Hosts != "fw002" {
		t.Errorf("other outcomes, too: %d %+v", code, second)
	}
	code, all := w.retry(old, more)
	if code != 200 || !all.Already || all.Task != "" || len(all.Earlier) != 2 || all.RetryOf != old ||
		all.Earlier[1].Task != second.Task || all.Earlier[1].Open != 1 {
		t.Errorf("all of it once more: %d %+v", code, all)
	}
	more.DryRun = true
	if code, dry = w.retry(old, more); code != 200 || !dry.Already || dry.Task != "" || dry.Hosts != "" {
		t.Errorf("dry run of that: %d %+v", code, dry)
	}

	// On purpose, and of what failed there.
	failed.Again = true
	if code, got := w.retry(old, failed); code != 201 || got.On != "fw002" || got.Earlier != nil {
		t.Errorf("again: %d %+v", code, got)
	}
	if code, got := w.retry(first.Task, api.RetryRequest{}); code != 201 || got.RetryOf != first.Task {
		t.Errorf("of the retry: %d %+v", code, got)
	}
}

func TestARetryThatWasCancelledBeforeItBeganIsNone(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	old := w.submit(run("fw00[1-2]")).Task
	w.work("default", ways)
	_, first := w.retry(old, api.RetryRequest{})
	w.call("POST", "/v1/tasks/"+string(first.Task)+"/cancel", api.CancelRequest{}, nil)
	if code, got := w.retry(old, api.RetryRequest{}); code != 201 || got.Task == first.Task {
		t.Errorf("%d %+v", code, got)
	}
}

// A drained host that the first of two same orders left out makes no mistake of the second.
func TestARetryTwiceOfADrainedHost(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	old := w.submit(run("fw00[1-2]")).Task
	w.work("default", func(string) jobs.Result { return jobs.Result{Outcome: jobs.Failed} })
	w.order("drain", "fw001", "")
	_, first := w.retry(old, api.RetryRequest{})
	if code, got := w.retry(old, api.RetryRequest{}); code != 200 || !got.Already || got.Task != first.Task ||
		got.LeftOut.Drained != "fw001" {
		t.Errorf("%d %+v", code, got)
	}
	w.order("undrain", "fw001", "")
	if code, got := w.retry(old, api.RetryRequest{}); code != 201 || got.On != "fw001" {
		t.Errorf("undrained: %d %+v", code, got)
	}
}

// Two people give the same order at the same moment, through two servers.
func TestRetriesAtTheSameMomentAreOne(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	servers := []*world{start(t, setup{redis: &cfg}), start(t, setup{redis: &cfg})}
	old := servers[0].submit(run("fw00[1-2]")).Task
	servers[0].work("default", ways)
	var all sync.WaitGroup
	var mu sync.Mutex
	made, named := 0, map[jobs.TaskID]bool{}
	for i := range 8 {
		all.Go(func() {
			code, got := servers[i%2].retry(old, api.RetryRequest{})
			mu.Lock()
			defer mu.Unlock()
			named[got.Task] = true
			if code == http.StatusCreated {
				made++
			} else if code != 200 || !got.Already {
				t.Errorf("%d %+v", code, got)
			}
		})
	}
	all.Wait()
	var tasks api.TaskList
	servers[0].call("GET", "/v1/tasks", nil, &tasks)
	if made != 1 || len(named) != 1 || len(tasks.Tasks) != 2 {
		t.Errorf("%d were made, %d named, there are %d tasks: want 1, 1 and 2", made, len(named), len(tasks.Tasks))
	}
}

// slowQueue is as slow as its test wants it to be in the middle of a submit.
type slowQueue struct {
	*queuetest.Queue
	half, goOn chan struct{}
}

func (q slowQueue) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, _ func(int)) error {
	return q.Queue.Submit(ctx, t, hosts, func(int) {
		if t.Spec.RetryOf != "" {
			close(q.half)
			<-q.goOn
		}
	})
}

// seenQueue notices a client that meets a retry in the middle of its submit.
type seenQueue struct {
	*queuetest.Queue
	met func()
}

func (q seenQueue) Retries(ctx context.Context, of, by jobs.TaskID, hosts []string) ([]jobs.Again, error) {
	list, err := q.Queue.Retries(ctx, of, by, hosts)
	if len(list) == 1 && list[0].Coming {
		q.met()
	}
	return list, err
}

// overtakenQueue lets a test come in when a retry is put, before it is made final.
type overtakenQueue struct {
	*queuetest.Queue
	meanwhile func()
}

func (q overtakenQueue) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string, _ func(int)) error {
	return q.Queue.Submit(ctx, t, hosts, func(int) {
		if t.Spec.RetryOf != "" {
			q.meanwhile()
		}
	})
}

// A retry that was too slow does the hosts that no other retry has. The task that was put under its
// id had more hosts, so it gets another id.
func TestARetryThatLostSomeHostsDoesTheOthers(t *testing.T) {
	t.Parallel()
	m, cfg := redistest.StartMini(t)
	other := start(t, setup{redis: &cfg})
	old := other.submit(run("fw00[1-3]")).Task
	other.work("default", ways)
	other.work("eu", ways)
	key, mark := "muster:{hub}:retried:"+string(old), "~0123456789"
	var taken api.Retried
	late := sync.OnceFunc(func() {
		m.HSet(key, mark, regexp.MustCompile(`("at":"?)\d+`).ReplaceAllString(m.HGet(key, mark), "${1}1"))
		_, taken = other.retry(old, api.RetryRequest{})
	})
	slow := start(t, setup{redis: &cfg, wrap: func(q *queuetest.Queue) everything { return overtakenQueue{q, late} }})
	ask := api.RetryRequest{ID: "0123456789", Outcomes: []jobs.Outcome{jobs.Failed, jobs.Unreachable}}
	code, got := slow.retry(old, ask)
	if code != 201 || got.On != "fw003" || got.Task == "0123456789" || len(got.Earlier) != 1 ||
		got.Earlier[0].Task != taken.Task || taken.On != "fw002" {
		t.Errorf("%d %+v, the other one: %+v", code, got, taken)
	}
	if code, same := slow.retry(old, ask); code != 200 || !same.Already || len(same.Earlier) != 2 {
		t.Errorf("said again: %d %+v", code, same)
	}
}

// comingQueue has a retry of all hosts that is being submitted, and never comes.
type comingQueue struct {
	*queuetest.Queue
	met func()
}

func (q comingQueue) Retries(_ context.Context, _, _ jobs.TaskID, hosts []string) ([]jobs.Again, error) {
	q.met()
	return []jobs.Again{{Task: "0123456789", Operator: "bob", Coming: true, Hosts: hosts, Open: len(hosts)}}, nil
}

// A server that stops does not wait, and names no task of which it does not know whether it comes.
func TestAServerThatStopsNamesNoRetryThatMayNotCome(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{false, true} {
		var w *world
		stops := sync.OnceFunc(func() { go w.stop() })
		w = start(t, setup{wrap: func(q *queuetest.Queue) everything { return comingQueue{q, stops} }})
		old := w.submit(run("fw00[1-2]")).Task
		w.work("default", ways)
		var p problem
		res := w.call("POST", "/v1/tasks/"+string(old)+"/retry", api.RetryRequest{Again: again}, &p)
		if res.StatusCode != 503 || !strings.Contains(p.Detail, "give the order again") {
			t.Errorf("again %t: %s %+v", again, res.Status, p)
		}
	}
}

// A client that meets a retry in the middle of its submit waits for its end.
func TestARetryWaitsForOneThatIsBeingSubmitted(t *testing.T) {
	t.Parallel()
	_, cfg := redistest.StartMini(t)
	half, goOn := make(chan struct{}), make(chan struct{})
	slow := start(t, setup{redis: &cfg, wrap: func(q *queuetest.Queue) everything {
		return slowQueue{q, half, goOn}
	}})
	other := start(t, setup{redis: &cfg, wrap: func(q *queuetest.Queue) everything {
		return seenQueue{q, sync.OnceFunc(func() { close(goOn) })}
	}})
	old := slow.submit(run("fw00[1-2]")).Task
	slow.work("default", ways)
	var first api.Retried
	var all sync.WaitGroup
	all.Go(func() { _, first = slow.retry(old, api.RetryRequest{ID: "0123456789"}) })
	<-half
	code, got := other.retry(old, api.RetryRequest{})
	all.Wait()
	if code != 200 || !got.Already || got.Task != "0123456789" || got.State != jobs.TaskQueued ||
		first.Task != "0123456789" {
		t.Errorf("%d %+v, the first one: %+v", code, got, first)
	}
	if !strings.Contains(other.log.String(), "task was retried before") {
		t.Error("the log does not say so")
	}
}

package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/lane"
	"muster/jobs/queue"
)

// inLane submits a task of a lane.
func (w *world) inLane(on, mode string) (t api.Submitted) {
	w.t.Helper()
	path := "/v1/tasks?lane=rules/acme&lane_mode=" + mode
	if res := w.call("POST", path, run(on), &t); res.StatusCode != http.StatusCreated {
		w.t.Fatal(res.Status)
	}
	return t
}

// lanes returns the lanes that a caller sees.
func (w *world) lanes() []api.LaneInfo {
	w.t.Helper()
	var l api.LaneList
	w.call("GET", "/v1/lanes", nil, &l)
	return l.Lanes
}

// inTurn waits until the lanes are as wanted: each task's state, in their order.
func (w *world) inTurn(want ...string) []api.LaneInfo {
	w.t.Helper()
	var got []string
	for until := time.Now().Add(20 * time.Second); time.Now().Before(until); {
		l := w.lanes()
		got = nil
		for _, one := range l {
			for _, t := range one.Tasks {
				got = append(got, t.State)
			}
		}
		if strings.Join(got, " ") == strings.Join(want, " ") {
			return l
		}
		<-time.After(20 * time.Millisecond)
	}
	w.t.Fatalf("the lane is %v, want %v", got, want)
	return nil
}

func TestTasksOfALaneRunInTheirOrder(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg})
		first := w.inLane("fw001", "")
		second := w.inLane("fw001", "")
		other := w.submit(run("fw002")) // of no lane: it waits for nobody
		l := w.inTurn("running", "waiting")
		if why := l[0].Tasks[1].Why; !strings.Contains(why, "it waits for task "+string(first.Task)) {
			t.Errorf("it waits because %q", why)
		}
		again := run("fw001")
		again.ID = string(second.Task)
		if res := w.call("POST", "/v1/tasks?lane=rules/acme", again, nil); res.StatusCode != http.StatusOK {
			t.Errorf("submitted again while it waits: %s", res.Status)
		}
		if res := w.call("POST", "/v1/tasks", again, nil); res.StatusCode != http.StatusConflict {
			t.Errorf("submitted again without its lane: %s", res.Status)
		}
		taken := w.take("default")
		if len(taken) != 2 || taken[0].Job.Task() == second.Task || taken[1].Job.Task() == second.Task {
			t.Fatalf("taken: %+v, want a job of %s and one of %s", taken, first.Task, other.Task)
		}
		for _, g := range taken {
			w.end("default", g, jobs.Failed)
		}
		w.inTurn("running")
		if taken = w.take("default"); len(taken) != 1 || taken[0].Job.Task() != second.Task {
			t.Fatalf("after the first has failed: %+v", taken)
		}
		w.end("default", taken[0], jobs.Succeeded)
		w.inTurn()
	})
}

func TestOnlyTheLatestOfALaneIsLeft(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg})
		w.inLane("fw001", "latest")
		w.inTurn("running")
		second := w.inLane("fw[001-002]", "latest")
		third := w.inLane("fw001", "latest")
		w.inTurn("running", "waiting")
		var info jobs.TaskInfo
		w.call("GET", "/v1/tasks/"+string(second.Task), nil, &info)
		var list api.JobList
		w.call("GET", "/v1/tasks/"+string(second.Task)+"/jobs", nil, &list)
		if len(list.Jobs) != 2 || list.Jobs[0].Outcome != jobs.Superseded || list.Jobs[1].Outcome != jobs.Cancelled ||
			!strings.Contains(list.Jobs[0].Error, "superseded by task "+string(third.Task)+" in lane rules/acme") {
			t.Errorf("the second: %+v %+v", info, list.Jobs)
		}
		w.work("default", succeed)
		w.inTurn("running")
		w.work("default", succeed)
		w.inTurn()
	})
}

func TestAFailureInAGateLaneWaitsForAPerson(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg})
		first := w.inLane("fw001", "gate")
		second := w.inLane("fw001", "gate")
		w.inTurn("running", "waiting")
		goOn := "/v1/tasks/" + string(first.Task) + "/lane/continue"
		if res := w.call("POST", goOn, why("too early"), nil); res.StatusCode != http.StatusNotFound {
			t.Errorf("continued before it failed: %s", res.Status)
		}
		for _, g := range w.take("default") {
			w.end("default", g, jobs.Failed)
		}
		l := w.inTurn("failed", "waiting")
		if !strings.Contains(l[0].Stuck, string(first.Task)) ||
			!strings.Contains(l[0].Tasks[1].Why, "a person decides") {
			t.Errorf("the lane says %+v", l[0])
		}
		if taken := w.take("default"); len(taken) > 0 {
			t.Fatalf("behind the failure something began: %+v", taken)
		}
		var after api.LaneInfo
		if res := w.call("POST", goOn, why("fw001 has its old rules"), &after); res.StatusCode != http.StatusOK {
			t.Fatal(res.Status)
		}
		if len(after.Tasks) != 1 || after.Tasks[0].Task != second.Task || after.Tasks[0].State != "running" {
			t.Errorf("it continues as %+v", after)
		}
		w.work("default", succeed)
		w.inTurn()
	})
}

func TestWhatIsWrongWithALaneIsSaid(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	for query, words := range map[string]string{
		"lane_mode=gate":        "query.lane: a lane needs a key",
		"lane=a%20b":            "query.lane: ",
		"lane=a&lane_mode=soon": "\"soon\" is no mode of a lane: want serial, latest, gate, pipeline or parallel=N",
		"lane=a&hold=true":      "a task in a lane cannot wait for signatures",
	} {
		var p problem
		res := w.call("POST", "/v1/tasks?"+query, run("fw001"), &p)
		if res.StatusCode != 422 || !strings.Contains(p.words(), words) {
			t.Errorf("%s: %s %s", query, res.Status, p.words())
		}
	}
	// A task that is cancelled while it waits lets the next one begin.
	w.inLane("fw001", "")
	second := w.inLane("fw001", "")
	w.inLane("fw002", "")
	w.inTurn("running", "waiting", "waiting")
	w.call("POST", "/v1/tasks/"+string(second.Task)+"/cancel", why("not any more"), nil)
	w.work("default", succeed)
	w.inTurn("running")
}

// A server that dies when the lane says that a task has begun, and before it has committed the task,
// leaves the commit to the next one.
func TestATaskThatADeadServerLetBeginIsCommitted(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, cfg queue.Config) {
		w := start(t, setup{redis: &cfg})
		like := w.submit(run("fw001"))
		w.work("default", succeed)
		ctx := t.Context()
		spec, err := w.queue.Spec(ctx, like.Task)
		if err != nil {
			t.Fatal(err)
		}
		id := jobs.NewTaskID(time.Now(), 7)
		e := lane.Entry{Task: id, Mode: lane.Serial, Most: 1, Since: spec.Created, Put: true, Begun: true}
		err = w.queue.PutOnly(ctx, jobs.Task{ID: id, Spec: spec, Total: 1}, map[string][]string{"default": {"fw002"}})
		if err == nil {
			_, err = w.queue.EnterLane(ctx, "rules/acme", e)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.inTurn("running")
		var taken []jobs.Grant
		for until := time.Now().Add(20 * time.Second); len(taken) == 0 && time.Now().Before(until); {
			taken = w.take("default")
		}
		if len(taken) != 1 || taken[0].Job != jobs.NewID(id, "fw002") {
			t.Fatalf("taken: %+v", taken)
		}
		w.end("default", taken[0], jobs.Succeeded)
		w.inTurn()
	})
}

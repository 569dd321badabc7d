package server_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/history/happened"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/server"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
	"muster/trust"
)

// vouching has the workers of a world prove what they report, with the key of its nodes.
func (w *world) vouching() {
	w.t.Helper()
	k, err := keyed(1)()
	if err != nil {
		w.t.Fatal(err)
	}
	stamps := k.Stamps(serverkey.Results)
	w.queue.Prove(func(t trust.Testimony) string { return t.Prove(stamps, time.Now()) })
}

// History believes of jobs what a node has proven. It keeps the rest, marked as not proven, and tells
// people.
func TestWhatNoNodeHasProvenIsMarked(t *testing.T) {
	t.Parallel()
	redis := redistest.StartServer(t, smallNodes...)
	cfg := redis.Config()
	store := openHistory(t, sqltest.SQLite(t))
	rules := trusting(t, "rules: [{level: server, mode: require}]")
	w := start(t, setup{redis: &cfg, history: store, inventory: fixed(many(7)),
		more: func(d *server.Deps) { d.Trust = rules }})
	w.vouching()
	task := w.submit(run("*")).Task
	id := func(n int) jobs.ID { return jobs.NewID(task, fmt.Sprintf("h%04d", n)) }
	f, key := redistest.NewIntruder(t, redis), keys.Zone("default", "task:", string(task))
	for _, n := range []int{3, 4, 5} {
		f.Unqueue("default", string(id(n))) // no worker does them
	}
	w.call("POST", "/v1/tasks/"+string(task)+"/cancel", map[string]any{"jobs": []jobs.ID{id(6)}}, nil)
	two := 2
	w.work("default", func(host string) jobs.Result {
		r := succeed(host)
		switch host {
		case id(1).Host():
			r.Outcome, r.ExitCode, r.Class, r.Error = jobs.Failed, &two, jobs.ClassOperator, "no\nroom  left"
			r.Note, r.Spent = "attached", "c5r7"
		case id(2).Host():
			r.Output = nil
		}
		return r
	})
	forge := func(n int, record string) {
		f.Set(key, ":"+id(n).Host(), record)
		f.Tell("default", `end `+string(id(n))+` {"outcome":"succeeded","exit":0}`)
	}
	honest := f.Get(key, ":"+id(0).Host())
	forge(3, honest[:strings.Index(honest, "~")]+" ")
	forge(4, honest) // with the proof of another job
	f.Tell("default", `end `+string(id(5))+` {"outcome":"failed","proof":"node"}`)
	f.Tell("default", `step `+string(id(0))+` {"step":3,"proof":"node"}`+"\n"+
		`retry `+string(id(0))+` {"at":1,"error":"no"}`)
	marks := map[jobs.ID]api.Proof{}
	waitFor(t, "the ends of all jobs", func() bool {
		r, err := store.Report(t.Context(), task)
		for _, j := range r.Jobs {
			marks[j.ID] = j.Proof
		}
		return err == nil && len(marks) == 7
	})
	for n, want := range []api.Proof{api.ByNode, api.ByNode, api.ByNode, api.NotProven, api.NotProven,
		api.NotProven, api.ByQueue} {
		if marks[id(n)] != want {
			t.Errorf("%s: %q, want %q", id(n), marks[id(n)], want)
		}
	}
	var doubted []string
	waitFor(t, "the events", func() bool {
		list, _, err := happened.List(t.Context(), store, happened.Filter{Task: task}, "", 500)
		doubted = nil
		for _, h := range list {
			if detail, _ := json.Marshal(h.Detail); strings.Contains(string(detail), `"proof":"none"`) {
				doubted = append(doubted, h.Event+" "+string(h.Object))
			} else if h.Event == "not-proven" {
				doubted = append(doubted, h.Event)
			}
		}
		slices.Sort(doubted)
		return err == nil && len(doubted) == 6
	})
	want := []string{"end " + string(id(3)), "end " + string(id(4)), "end " + string(id(5)), "not-proven",
		"retry " + string(id(0)), "step " + string(id(0))}
	if !slices.Equal(doubted, want) {
		t.Errorf("events that are not proven: %q, want %q", doubted, want)
	}
	w.toldOfDoubts(task, id)
}

// toldOfDoubts checks that every view says which ends are not proven.
func (w *world) toldOfDoubts(task jobs.TaskID, id func(int) jobs.ID) {
	w.t.Helper()
	const words = "not proven"
	for n, want := range []bool{false, false, false, true, true, false, false} {
		if n == 5 {
			continue // Redis has no end of it
		}
		var j api.JobDetail
		w.call("GET", "/v1/jobs/"+string(id(n)), nil, &j)
		if strings.Contains(j.Note, words) != want {
			w.t.Errorf("%s: note %q", id(n), j.Note)
		}
	}
	var sum api.Summary
	w.call("GET", "/v1/tasks/"+string(task)+"/summary", nil, &sum)
	i := slices.IndexFunc(sum.Groups, func(g api.Alike) bool { return g.Proof == api.NotProven })
	if i < 0 || sum.Groups[i].Count != 2 || sum.Groups[i].Hosts != "h[0003-0004]" {
		w.t.Errorf("groups: %+v", sum.Groups)
	}
	for path, words := range map[string]string{"/v1/tasks/" + string(task) + "/report": "the end of 2 jobs",
		"/v1/tasks/" + string(task) + "/jobs": words, "/v1/history?task=" + string(task): `"proof":"none"`,
		"/metrics": "muster_not_proven_total"} {
		if _, text := w.raw("GET", path, nil, nil); !strings.Contains(string(text), words) {
			w.t.Errorf("%s does not say %q: %s", path, words, text)
		}
	}
}

// The next wave begins by itself only after ends that a node has proven; a person may open it all the
// same.
func TestAWaveFollowsProvenEndsOnly(t *testing.T) {
	t.Parallel()
	rules := trusting(t, "rules: [{level: server, mode: require}]")
	w := start(t, setup{inventory: fixed(many(3)), more: func(d *server.Deps) { d.Trust = rules }})
	body := run("*")
	body.Rollout = &jobs.RolloutAsk{Stages: jobs.Stages{Waves: []string{"1", "2", "100%"}}}
	task := w.submit(body).Task
	ended := func(n int) func() bool {
		return func() bool {
			w.work("default", succeed)
			var i jobs.TaskInfo
			w.call("GET", "/v1/tasks/"+string(task), nil, &i)
			return i.Outcomes[jobs.Succeeded] == n
		}
	}
	w.vouching()
	waitFor(t, "the end of the first wave", ended(1))
	w.queue.Prove(nil)
	waitFor(t, "a wave after a proven one", ended(2))
	var i jobs.TaskInfo
	waitFor(t, "a stop of the rollout", func() bool {
		w.call("GET", "/v1/tasks/"+string(task), nil, &i)
		return i.State == jobs.TaskStopped
	})
	if i.Outcomes[jobs.Succeeded] != 2 ||
		!strings.Contains(i.Rollout.Stopped, "no node has proven that it succeeded on h0001") {
		t.Errorf("%v, stopped: %+v", i.Outcomes, i.Rollout)
	}
	w.call("POST", "/v1/tasks/"+string(task)+"/rollout/next", api.NextRequest{OrderRequest: why("seen")}, nil)
	waitFor(t, "the wave that a person opened", ended(3))
}

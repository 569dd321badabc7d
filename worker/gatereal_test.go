package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"muster/fleet/remote"
	"muster/internal/proc"
	"muster/jobs"
	"muster/scripts"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/worker"
	"muster/worker/attempt"
)

const gatedBook = `
name: gated
timeout: 20s
steps:
  - name: look
    check: echo "DS of "{{host.name}}
    save: {ds: {lines: true}}
  - name: person
    gate: {question: "Publish {{saved.ds}}", timeout: 4h, release: true}
    on_fail: [{name: undo, run: echo undone}]
  - name: use
    run: echo used
`

// No worker is busy while a job waits for a person, and each job follows the answer, whichever
// worker has it then.
func TestAGateOnARealRedis(t *testing.T) {
	t.Parallel()
	hosts := startFleet(t, 4, nil)
	cfg := redistest.StartServer(t).Config()
	q := openQueue(t, cfg, hosts)
	task := submit(t, q, specOf(t, gatedBook), hosts)

	workOn(t, q, "one")
	opened := jobs.GateAnswer{Word: jobs.GateOpen, Note: "opened by alice: yes"}
	for host, a := range map[string]jobs.GateAnswer{hosts[0].Name: opened,
		hosts[1].Name: {Word: jobs.GateRefuse, Note: "refused by alice: no"}} {
		j, err := q.Job(t.Context(), jobs.NewID(task, host))
		if err != nil || j.Gate == nil || j.Gate.Question != `Publish "DS of `+host+`"` || j.State != jobs.Waiting {
			t.Fatalf("%+v, %v", j, err)
		}
		if did, err := q.AnswerGates(t.Context(), task, []string{host}, a, nil); err != nil ||
			len(did.Answered) != 1 || len(did.Stand) < 2 {
			t.Fatalf("%+v, %v", did, err)
		}
	}
	if _, err := q.CancelJobs(t.Context(), []jobs.ID{jobs.NewID(task, hosts[2].Name)}, "bob: no"); err != nil {
		t.Fatal(err)
	}
	workOn(t, q, "two")

	var got []string
	for _, h := range hosts {
		j, err := q.Job(t.Context(), jobs.NewID(task, h.Name))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.TrimSpace(fmt.Sprint(j.State, " ", j.Outcome, " ", j.Class, " ", j.Error)))
	}
	want := []string{"ended succeeded", "ended failed operator step 2 (person): refused by alice: no",
		"ended cancelled  cancelled after step 1: bob: no", "wait"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// specOf returns a task of a runbook without arguments.
func specOf(t *testing.T, text string) jobs.Spec {
	t.Helper()
	rb, err := scripts.Parse("book.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	values, err := rb.Bind(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	action, err := json.Marshal(rb.Freeze(values))
	if err != nil {
		t.Fatal(err)
	}
	return jobs.Spec{Runbook: rb.Name, Inventory: "v1", Timeout: jobs.AttemptTimeout(rb.Timeout),
		Expire: jobs.DefaultExpire, Retry: jobs.DefaultPolicy(), Created: jobs.MicrosOf(time.Now()), Action: action}
}

// workOn lets a worker do the due jobs, until it ends because none is left.
func workOn(t *testing.T, q *queuetest.Queue, request string) {
	t.Helper()
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	w, err := worker.New(worker.Default(), worker.Doors{Queue: q, Times: q,
		Steps: attempt.Doors{Queue: q, Dial: attempt.SSH(client)}, Clock: proc.Boot, Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	h := jobs.Handover{Node: "n1", Slot: "0", Zone: "default", Sent: proc.Boot()}
	h.Reply, err = q.Step(t.Context(), h.Zone, jobs.Step{Node: h.Node, Slot: h.Slot, Request: request, Want: 1})
	if err != nil {
		t.Fatal(err)
	}
	var last jobs.Report
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Run(ctx, h, worker.Master{Report: func(r jobs.Report) { last = r }}); err != nil {
		t.Fatal(err)
	}
	if !last.Bye || len(last.Jobs) != 0 {
		t.Errorf("last report = %+v, want a bye with nothing in hand", last)
	}
}

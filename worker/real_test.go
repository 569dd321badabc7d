package worker_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/fakefleet"
	"muster/internal/proc"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/scripts"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/worker"
	"muster/worker/attempt"
)

const book = `
name: greet
arguments:
  word: {type: string}
timeout: 20s
retry: {submit: 1}
steps:
  - name: put
    run: echo hello from the file > /tmp/greeting
  - name: read
    run: cat /tmp/greeting && echo {{word}} {{host.name}}
`

// TestOnRealParts runs a worker as in production, with the scripts of the queue and over SSH. Some
// of the hosts have faults.
func TestOnRealParts(t *testing.T) {
	t.Parallel()
	faults := map[int]fakefleet.Personality{1: fakefleet.Refuse, 3: fakefleet.WrongKey, 4: fakefleet.Cut,
		6: fakefleet.Fail, 8: fakefleet.NoExitStatus}
	hosts := startFleet(t, 12, faults)
	q, spec := prepare(t, hosts)
	task := submit(t, q, spec, hosts)

	run(t, q)

	got := map[fakefleet.Personality]string{}
	for i, h := range hosts {
		j, err := q.Job(t.Context(), jobs.NewID(task, h.Name))
		if err != nil {
			t.Fatal(err)
		}
		said, err := q.Output(t.Context(), j.ID)
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		for _, p := range said {
			out = append(out, p.Data...)
		}
		if p := faults[i]; p != "" {
			got[p] = strings.TrimRight(string(j.Outcome)+" "+string(j.Class), " ")
			if j.Error == "" {
				t.Errorf("%s: no error", p)
			}
			continue
		}
		want := "== step 1 of 2: put ==\n== step 2 of 2: read ==\nhello from the file\nit's " + h.Name + "\n"
		if j.Outcome != jobs.Succeeded || string(out) != want {
			t.Errorf("%s: %s (%s), output %q, want %q", h.Name, j.Outcome, j.Error, out, want)
		}
	}
	want := map[fakefleet.Personality]string{
		fakefleet.Refuse:       "unreachable transient",
		fakefleet.WrongKey:     "failed operator",
		fakefleet.Cut:          "unknown operator",
		fakefleet.Fail:         "failed user",
		fakefleet.NoExitStatus: "unknown operator",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
}

// startFleet pretends hosts and returns their inventory.
func startFleet(t *testing.T, n int, faults map[int]fakefleet.Personality) []fleet.Host {
	t.Helper()
	f, err := fakefleet.Start(fakefleet.Config{Hosts: n, Personality: func(i int) fakefleet.Personality {
		if p, ok := faults[i]; ok {
			return p
		}
		return fakefleet.Normal
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteFiles(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	hosts := f.Hosts()
	for i := range hosts {
		hosts[i].Zone = fleet.DefaultZone
	}
	return hosts
}

// prepare opens a queue as a child does, publishes the inventory and freezes the
// runbook.
func prepare(t *testing.T, hosts []fleet.Host) (*queuetest.Queue, jobs.Spec) {
	t.Helper()
	_, cfg := redistest.StartMini(t)
	q := openQueue(t, cfg, hosts)

	rb, err := scripts.Parse("greet.yaml", []byte(book))
	if err != nil {
		t.Fatal(err)
	}
	values, err := rb.Bind(map[string]string{"word": "it's"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	frozen := rb.Freeze(values)
	action, err := json.Marshal(frozen)
	if err != nil {
		t.Fatal(err)
	}
	return q, jobs.Spec{Runbook: rb.Name, Inventory: "v1", Timeout: jobs.AttemptTimeout(rb.Timeout),
		Expire: jobs.DefaultExpire, Retry: jobs.Policy{Tries: rb.Retry.Submit, Delay: rb.Retry.Delay},
		Created: jobs.MicrosOf(time.Now()), Action: action}
}

// openQueue opens a queue as a child does, and publishes the inventory.
func openQueue(t *testing.T, cfg queue.Config, hosts []fleet.Host) *queuetest.Queue {
	t.Helper()
	cfg.Node, cfg.Slot = "n1", "0"
	q, err := queuetest.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	if err := q.Publish(t.Context(), "v1", hosts, nil); err != nil {
		t.Fatal(err)
	}
	return q
}

func submit(t *testing.T, q *queuetest.Queue, spec jobs.Spec, hosts []fleet.Host) jobs.TaskID {
	t.Helper()
	var names []string
	for _, h := range hosts {
		names = append(names, h.Name)
	}
	task := jobs.Task{ID: jobs.NewTaskID(time.Now(), 1), Spec: spec, Total: len(hosts)}
	if err := q.Submit(t.Context(), task, map[string][]string{fleet.DefaultZone: names}, nil); err != nil {
		t.Fatal(err)
	}
	return task.ID
}

// run takes the first job as a master does, and lets a worker do all jobs.
func run(t *testing.T, q *queuetest.Queue) {
	t.Helper()
	client, err := remote.New(remote.Default())
	if err != nil {
		t.Fatal(err)
	}
	cfg := worker.Default()
	cfg.Slots = 8
	w, err := worker.New(cfg, worker.Doors{Queue: q, Times: q,
		Steps: attempt.Doors{Queue: q, Dial: attempt.SSH(client)}, Clock: proc.Boot,
		Log: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}

	h := jobs.Handover{Node: "n1", Slot: "0", Zone: fleet.DefaultZone, Sent: proc.Boot()}
	h.Reply, err = q.Step(t.Context(), h.Zone, jobs.Step{Node: h.Node, Slot: h.Slot, Request: "first", Want: 1})
	if err != nil {
		t.Fatal(err)
	}
	var last jobs.Report
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := w.Run(ctx, h, worker.Master{Report: func(r jobs.Report) { last = r }}); err != nil {
		t.Fatal(err)
	}
	if !last.Bye || len(last.Jobs) != 0 || last.Next != 0 {
		t.Errorf("last report = %+v, want a bye with nothing left", last)
	}
}

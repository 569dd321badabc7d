package queue_test

import (
	"slices"
	"testing"
	"time"

	"muster/jobs"
)

func TestDrainedHosts(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 4, -1)
		order := func(do func() ([]string, error), want ...string) {
			t.Helper()
			got, err := do()
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("changed %v, %v; want %v", got, err, want)
			}
		}
		ctx := t.Context()
		two := map[string][]string{zone: {"fw0001", "fw0000"}}
		three := map[string][]string{zone: {"fw0000", "fw0002", "fw0001"}}
		order(func() ([]string, error) { return q.Drain(ctx, two, "alice: new disk") }, "fw0000", "fw0001")
		order(func() ([]string, error) { return q.Drain(ctx, three, "bob") }, "fw0002")
		order(func() ([]string, error) { return q.Drain(ctx, three, "bob") })
		drained, err := q.Drained(ctx)
		if err != nil || len(drained) != 3 || drained["fw0001"].Note != "alice: new disk" ||
			drained["fw0002"].Note != "bob" || time.Since(drained["fw0000"].At.Time).Abs() > time.Hour {
			t.Errorf("drained: %+v, %v", drained, err)
		}
		order(func() ([]string, error) { return q.Undrain(ctx, two, "carol: it is in") }, "fw0000", "fw0001")
		order(func() ([]string, error) { return q.Undrain(ctx, two, "carol") })
		if drained, err = q.Drained(ctx); err != nil || len(drained) != 1 {
			t.Errorf("left drained: %+v, %v", drained, err)
		}

		var told []string
		events, _, err := q.Events(ctx, zone, "0", 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if detail, _ := e.Detail.(map[string]any); e.Event == "drain" || e.Event == "undrain" {
				told = append(told, e.Event+" "+e.Object+" "+detail["note"].(string))
			}
		}
		slices.Sort(told)
		if want := []string{"drain fw0000 alice: new disk", "drain fw0001 alice: new disk", "drain fw0002 bob",
			"undrain fw0000 carol: it is in", "undrain fw0001 carol: it is in"}; !slices.Equal(told, want) {
			t.Errorf("events: %q, want %q", told, want)
		}
	})
}

func TestTheWorkOfAHost(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		look := func(host string, tasks int) jobs.HostWork {
			t.Helper()
			work, err := q.HostWork(t.Context(), zone, host, tasks)
			if err != nil {
				t.Fatal(err)
			}
			return work
		}
		if work := look("fw0000", 10); work.Lock != "" || len(work.Jobs) != 0 {
			t.Errorf("before all tasks: %+v", work)
		}
		first := submit(t, q, spec(), 2)
		g := one(t, step(t, q, "1", 1))
		host := g.Job.Host()
		second := submit(t, q, spec(), 2)
		work := look(host, 10)
		if work.Lock != g.Job || work.Until.Before(time.Now().Add(time.Second)) || len(work.Jobs) != 2 {
			t.Fatalf("with a job in hand: %+v", work)
		}
		states := map[jobs.TaskID]jobs.State{}
		for _, j := range work.Jobs {
			states[j.ID.Task()] = j.State
		}
		if states[first] != jobs.Running || states[second] != jobs.Queued {
			t.Errorf("its jobs are %v", states)
		}
		step(t, q, "1", 0, ended(g, jobs.Failed))
		if work = look(host, 10); work.Lock != "" || !work.Until.IsZero() {
			t.Errorf("after the job: %+v", work)
		}
		if work = look(host, 1); len(work.Jobs) != 1 {
			t.Errorf("of the newest task: %+v", work.Jobs)
		}
		if work = look("nobody", 10); len(work.Jobs) != 0 {
			t.Errorf("a host of no task: %+v", work.Jobs)
		}
	})
}

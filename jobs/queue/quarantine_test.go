package queue_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/testkit/queuetest"
)

// kind submits a task of one host that is something to hosts in quarantine.
func kind(t *testing.T, q *queuetest.Queue, k quarantine.Kind, hosts int) jobs.TaskID {
	t.Helper()
	task, all := newTask(spec(), hosts)
	if k != "" {
		task.Beside = map[string][]string{zone: {quarantine.Field, string(k)}}
	}
	if err := q.Submit(t.Context(), task, all, nil); err != nil {
		t.Fatal(err)
	}
	return task.ID
}

// aside returns the hosts in quarantine with their jobs.
func aside(t *testing.T, q *queuetest.Queue) map[string]string {
	t.Helper()
	marks, err := q.Quarantined(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for host, m := range marks {
		out[host] = m.Job + "/" + m.Why
	}
	return out
}

// The end of the job and the quarantine of its host are one call: none is without the other.
func TestAHostWhoseJobEndedUnknownTakesOnlyChecks(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		kind(t, q, quarantine.Sets, 1)
		first := one(t, step(t, q, "1", 1))
		waits := kind(t, q, quarantine.Sets, 1) // for the host
		lost := ended(first, jobs.Unknown)
		lost.Error = "the line broke"
		if r := step(t, q, "1", 1, lost); len(r.Jobs) > 0 {
			t.Fatalf("the call that ends it unknown hands out %v", r.Jobs)
		}
		host := first.Job.Host()
		want := map[string]string{host: string(first.Job) + "/the line broke"}
		if got := aside(t, q); !maps.Equal(got, want) {
			t.Fatalf("in quarantine: %v, want %v", got, want)
		}
		if got := drain(t, q, "1", 2); len(got) > 0 {
			t.Fatalf("a host in quarantine takes %v", got)
		}
		list := []jobs.JobInfo{info(t, q, jobs.NewID(waits, host))}
		why, err := q.Explain(t.Context(), list, 1)
		if err != nil || list[0].State != jobs.Blocked ||
			!strings.Contains(why[0].Own, "in quarantine: job "+string(first.Job)) {
			t.Errorf("it is %s and waits for %+v, %v", list[0].State, why, err)
		}

		bad := kind(t, q, quarantine.Check, 1)
		g := one(t, step(t, q, "1", 1))
		if g.Job.Task() != bad {
			t.Fatalf("%v begins, want the check %s", g.Job, bad)
		}
		step(t, q, "1", 0, ended(g, jobs.Failed))
		if got := aside(t, q); len(got) != 1 {
			t.Fatalf("a check that fails releases its host: %v", got)
		}
		kind(t, q, quarantine.Check, 1)
		g = one(t, step(t, q, "1", 1))
		step(t, q, "1", 0, ended(g, jobs.Succeeded))
		if got := aside(t, q); len(got) > 0 {
			t.Fatalf("after a clean check: %v", got)
		}
		if g = one(t, step(t, q, "1", 1)); g.Job.Task() != waits {
			t.Fatalf("%v begins, want a job of %s", g.Job, waits)
		}
	})
}

// One call that sets a host aside and releases another one leaves the first in quarantine.
func TestOneReportSetsAsideAndReleases(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		second := map[string][]string{zone: {"fw0001"}}
		if _, err := q.Quarantine(t.Context(), quarantine.SetAside, second, "alice: strange"); err != nil {
			t.Fatal(err)
		}
		kind(t, q, quarantine.Sets, 1)
		kind(t, q, quarantine.Check, 2)
		var lost, clean jobs.Result
		for _, g := range drain(t, q, "1", 2) {
			if g.Job.Host() == "fw0000" {
				lost = ended(g, jobs.Unknown)
			} else {
				clean = ended(g, jobs.Succeeded)
			}
		}
		step(t, q, "1", 0, lost, clean)
		if got := aside(t, q); len(got) != 1 || got["fw0000"] == "" {
			t.Fatalf("in quarantine: %v, want fw0000", got)
		}
		plain := kind(t, q, quarantine.Plain, 1)
		for _, g := range drain(t, q, "1", 3) {
			if g.Job.Task() == plain {
				t.Errorf("%v begins on a host in quarantine", g.Job)
			}
		}
	})
}

// A check that began before its host was set aside does not release it.
func TestAnEarlierCheckReleasesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		kind(t, q, quarantine.Check, 1)
		g := one(t, step(t, q, "1", 1))
		if w.pass != nil { // real servers have a clock that goes
			w.pass(time.Millisecond)
		}
		_, err := q.Quarantine(t.Context(), quarantine.SetAside, map[string][]string{zone: {"fw0000"}},
			"alice: strange")
		if err != nil {
			t.Fatal(err)
		}
		step(t, q, "1", 0, ended(g, jobs.Succeeded))
		if got := aside(t, q); len(got) != 1 {
			t.Fatalf("in quarantine: %v, want fw0000", got)
		}
	})
}

// Without the policy nothing is set aside, and an order of a person holds for jobs in the queue.
func TestAPersonSetsAHostAside(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		kind(t, q, quarantine.Plain, 2)
		g := one(t, step(t, q, "1", 1))
		step(t, q, "1", 0, ended(g, jobs.Unknown))
		if got := aside(t, q); len(got) > 0 {
			t.Fatalf("without a policy: %v", got)
		}
		both := map[string][]string{zone: {"fw0000", "fw0001"}}
		order := func(verb string, want ...string) {
			t.Helper()
			got, err := q.Quarantine(t.Context(), verb, both, "alice: strange")
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s changed %v, %v; want %v", verb, got, err, want)
			}
		}
		order(quarantine.SetAside, "fw0000", "fw0001")
		order(quarantine.SetAside)
		if got := aside(t, q); got["fw0001"] != "/alice: strange" {
			t.Errorf("in quarantine: %v", got)
		}
		if got := drain(t, q, "1", 2); len(got) > 0 {
			t.Fatalf("hosts in quarantine take %v", got)
		}
		order(quarantine.Release, "fw0000", "fw0001")
		order(quarantine.Release)
		if got := drain(t, q, "1", 2); len(got) != 1 {
			t.Fatalf("after the release %v begin, want one", got)
		}
	})
}

package queue_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/redistest"
)

// A person may release a host that stays locked after a job which ended unknown, and the job that
// waits for the host begins; the host of a job that has not ended is not released.
func TestAHostIsReleasedOnlyBehindItsJob(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		host := g.Job.Host()
		did, err := q.ReleaseHost(t.Context(), zone, host, "alice: looked")
		if !errors.Is(err, queue.ErrHeld) || !strings.Contains(err.Error(), string(g.Job)+", whose state is running") ||
			did.Job != g.Job {
			t.Fatalf("a host at work: %+v, %v", did, err)
		}
		res := ended(g, jobs.Unknown)
		res.KeepLock = true
		step(t, q, "1", 0, res)
		next := jobs.NewID(submit(t, q, spec(), 1), host)
		if r := step(t, q, "1", 5); len(r.Jobs) != 0 {
			t.Fatalf("a job begins on a locked host: %+v", r.Jobs)
		}
		did, err = q.ReleaseHost(t.Context(), zone, host, "alice: looked")
		if err != nil || did.Already || did.Job != g.Job || did.Until.IsZero() {
			t.Fatalf("released: %+v, %v", did, err)
		}
		if r := step(t, q, "1", 5); len(r.Jobs) != 1 || r.Jobs[0].Job != next {
			t.Errorf("nobody begins on the host that was released: %+v", r.Jobs)
		}
		wantState(t, q, g.Job, jobs.Ended, jobs.Unknown) // the end stays unknown
		for _, free := range []string{"fw0007", "fw0008"} {
			if did, err = q.ReleaseHost(t.Context(), zone, free, "alice: looked"); err != nil || !did.Already {
				t.Errorf("a host that is free: %+v, %v", did, err)
			}
		}
		list, _, err := q.Events(t.Context(), zone, "0", 100, 0)
		list = slices.DeleteFunc(list, func(e jobs.Happening) bool { return e.Event != "release" })
		if err != nil || len(list) != 1 || list[0].Object != host {
			t.Errorf("events %+v, %v", list, err)
		}
	})
}

// A host stays locked for a job whose task Redis has forgotten, though no order reaches that job: a
// person may end the lock, and a job that waits for the host says so.
func TestAHostIsReleasedBehindAJobThatIsForgotten(t *testing.T) {
	t.Parallel()
	w := world{cfg: redistest.StartServer(t).Config()}
	q := open(t, w, "1")
	submit(t, q, spec(), 1)
	g := one(t, step(t, q, "1", 1))
	host := g.Job.Host()
	next := jobs.NewID(submit(t, q, spec(), 1), host)
	if r := step(t, q, "1", 5); len(r.Jobs) != 0 {
		t.Fatalf("a job begins on a locked host: %+v", r.Jobs)
	}
	if err := w.raw(t).Del(t.Context(), "muster:{default}:task:"+string(g.Job.Task())).Err(); err != nil {
		t.Fatal(err)
	}
	info, err := q.Job(t.Context(), next)
	if err != nil || !strings.Contains(info.Why, "forgotten") || !strings.Contains(info.Why, "hosts release") {
		t.Errorf("why it waits: %q, %v", info.Why, err)
	}
	did, err := q.ReleaseHost(t.Context(), zone, host, "alice: looked")
	if err != nil || did.Already || did.Job != g.Job {
		t.Fatalf("released: %+v, %v", did, err)
	}
	if r := step(t, q, "1", 5); len(r.Jobs) != 1 || r.Jobs[0].Job != next {
		t.Errorf("nobody begins on the host that was released: %+v", r.Jobs)
	}
}

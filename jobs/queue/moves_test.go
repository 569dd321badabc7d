package queue_test

import (
	"slices"
	"testing"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue/read"
)

// A host that an inventory puts into another zone has locks of its own there. While it has work in
// the zone before, two jobs could be on it at once.
func TestAHostWithWorkIsSeenBeforeItComesToAnotherZone(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		err := q.Publish(t.Context(), "v-1", []fleet.Host{{Name: "fw0000", Zone: zone}, {Name: "fw0001", Zone: zone},
			{Name: "fw0002", Zone: zone}, {Name: "eu1", Zone: "eu"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		next := map[string]string{"fw0000": "eu", "fw0001": zone, "fw0002": "eu", "eu1": "eu", "new": "eu"}
		want := func(when string, want ...read.Mover) {
			t.Helper()
			for _, version := range []string{"v-1", "v-0"} { // nothing is known of the second one
				got, err := q.Movers(t.Context(), version, next)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s, after %s: %+v, %v, want %+v", when, version, got, err, want)
				}
			}
		}
		want("before there is work")
		id := submit(t, q, spec(), 2)
		mover := read.Mover{Host: "fw0000", From: zone, Job: jobs.NewID(id, "fw0000")}
		want("while jobs wait", mover)
		r := step(t, q, "1", 2)
		want("while they run", mover)
		if _, err := q.Cancel(t.Context(), id, "alice"); err != nil {
			t.Fatal(err)
		}
		want("while they are being cancelled", mover)
		var results []jobs.Result
		for _, g := range r.Jobs {
			results = append(results, ended(g, jobs.Cancelled))
		}
		step(t, q, "1", 0, results...)
		want("when they have ended")

		task, names := newTask(spec(), 1) // no zone has a task as open that waits for signatures
		if err := q.PutHeld(t.Context(), task, names); err != nil {
			t.Fatal(err)
		}
		want("while a task waits for signatures",
			read.Mover{Host: "fw0000", From: zone, Job: jobs.NewID(task.ID, "fw0000")})
		if err := q.DropHeld(t.Context(), task.ID); err != nil {
			t.Fatal(err)
		}
		want("when it does not wait any more")

		// The job has ended as lost, and its worker may still be on the host.
		if err := w.raw(t).HSet(t.Context(), "muster:{default}:locks", "fw0002",
			"9000000000000000 1 "+string(jobs.NewID(id, "fw0002"))).Err(); err != nil {
			t.Fatal(err)
		}
		want("while a lock holds", read.Mover{Host: "fw0002", From: zone, Job: jobs.NewID(id, "fw0002")})
		if err := w.raw(t).HDel(t.Context(), "muster:{default}:locks", "fw0002").Err(); err != nil {
			t.Fatal(err)
		}
	})
}

package queue_test

import (
	"testing"
	"time"

	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/testkit/queuetest"
)

func depth(t *testing.T, q *queuetest.Queue) read.Depth {
	t.Helper()
	d, err := q.Depth(t.Context(), zone)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDepthTellsWhoseJobsWait(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		if d := depth(t, q); d.Tasks != 0 || d.Shares == nil || len(d.Shares) != 0 || !d.Oldest.IsZero() {
			t.Errorf("an empty zone: %+v", d)
		}
		alice := submit(t, q, asked("alice", ""), 30)
		bob := submit(t, q, asked("bob", jobs.PriorityHigh), 4)
		submit(t, q, asked("carol", ""), 1)
		since := depth(t, q).Oldest
		if r := reorder(t, q); !r.Did {
			t.Fatalf("%+v", r)
		}
		taken(t, q, 5)
		g := one(t, step(t, q, "1", 1))
		d := depth(t, q)
		if d.Tasks != 2 || len(d.Shares) != 2 || d.Shares[0].Task != alice || d.Shares[1].Task != bob {
			t.Fatalf("%+v", d.Sharing)
		}
		sum, running := 0, 0
		for _, s := range d.Shares {
			sum, running = sum+s.Waiting, running+s.Running
		}
		if s := d.Shares[1]; sum != 29 || running != 1 || s.Operator != "bob" ||
			s.Priority != jobs.PriorityHigh || s.Total != 4 || s.Due.IsZero() {
			t.Errorf("%+v, with %s in hand", d.Shares, g.Job)
		}
		if r := d.Reordered; r.Now || r.At.IsZero() || r.Moved != 35 || r.By != "n1/1" ||
			r.End != jobs.ReorderDone || !r.Next.After(r.At.Time) {
			t.Errorf("reordered: %+v", r)
		}
		// The scores are below all due times now, and are not taken for due times.
		if d.Oldest != since {
			t.Errorf("the oldest is due since %s, it was %s", d.Oldest, since)
		}
		step(t, q, "1", 0, ended(g, jobs.Succeeded))
	})
}

func TestTheOldestOfALaterTaskIsItsTime(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		later, hosts := newTask(spec(), 3)
		later.At = jobs.MicrosOf(time.Now().Add(time.Hour))
		if err := q.Submit(t.Context(), later, hosts, nil); err != nil {
			t.Fatal(err)
		}
		if d := depth(t, q); d.Oldest != jobs.TimeOf(later.At) || d.Overdue != 0 || d.Due != 0 {
			t.Errorf("%+v", d)
		}
	})
}

// More jobs come than are done, in small tasks without an end: a big one still gets its share,
// because among equals the one that is due longest comes first.
func TestAStreamOfSmallTasksDoesNotStarveABigOne(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		big := submit(t, q, asked("alice", ""), 300)
		const rounds, each = 15, 8
		got, least := 0, each
		for range rounds {
			for range 3 {
				submit(t, q, asked("bob", ""), 4)
			}
			cool(t, w)
			if r := reorder(t, q); !r.Did {
				t.Fatalf("%+v", r)
			}
			n := 0
			for _, id := range tasksOf(taken(t, q, each)) {
				if id == big {
					n++
				}
			}
			got, least = got+n, min(least, n)
		}
		if least < 1 || got > rounds*each/2 {
			t.Errorf("the big task got %d of %d starts, at least %d of %d", got, rounds*each, least, each)
		}
	})
}

package queue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/testkit/queuetest"
)

func fsck(t *testing.T, q *queuetest.Queue, mend bool) []jobs.Finding {
	t.Helper()
	f, err := q.Fsck(t.Context(), zone, mend, "mended by alice: a restore")
	if err != nil {
		t.Fatal(err)
	}
	return f.Findings
}

func TestFsckTellsAndMends(t *testing.T) {
	const p = "muster:{default}:"
	for _, c := range []struct {
		name, what string
		state      jobs.State // of the first host's job after the mend
		outcome    jobs.Outcome
		spoil      func(t *testing.T, r *redis.Client, id, running jobs.ID)
	}{
		{"in two places", jobs.FoundTwice, jobs.Running, "",
			func(t *testing.T, r *redis.Client, _, running jobs.ID) {
				r.ZAdd(t.Context(), p+"queue", redis.Z{Score: 1, Member: string(running)})
			}},
		{"nowhere, but it ran", jobs.FoundNowhere, jobs.Lost, "",
			func(t *testing.T, r *redis.Client, _, running jobs.ID) {
				r.ZRem(t.Context(), p+"again", string(running))
			}},
		{"nowhere, without a trace", jobs.FoundNowhere, jobs.Ended, jobs.Unknown,
			func(t *testing.T, r *redis.Client, id, _ jobs.ID) {
				r.ZRem(t.Context(), p+"queue", string(id))
			}},
		{"runs, but stands in the queue", jobs.FoundMisplace, jobs.Running, "",
			func(t *testing.T, r *redis.Client, _, running jobs.ID) {
				r.ZRem(t.Context(), p+"again", string(running))
				r.ZAdd(t.Context(), p+"queue", redis.Z{Score: 1, Member: string(running)})
			}},
		{"would be looked at next year", jobs.FoundFar, jobs.Running, "",
			func(t *testing.T, r *redis.Client, _, running jobs.ID) {
				year := float64(time.Now().AddDate(1, 0, 0).UnixMicro())
				r.ZAdd(t.Context(), p+"again", redis.Z{Score: year, Member: string(running)})
				r.HDel(t.Context(), p+"locks", running.Host())
			}},
		{"a job of no task", jobs.FoundOrphan, "", "",
			func(t *testing.T, r *redis.Client, _, _ jobs.ID) {
				r.ZAdd(t.Context(), p+"queue", redis.Z{Score: 1, Member: "0000000000:fw1"})
			}},
		{"a counter", jobs.FoundCount, "", "",
			func(t *testing.T, r *redis.Client, id, _ jobs.ID) {
				r.HIncrBy(t.Context(), p+"task:"+string(id.Task()), "running", 3)
			}},
		{"a holder that is no more", jobs.FoundHolder, "", "",
			func(t *testing.T, r *redis.Client, id, _ jobs.ID) {
				r.HSet(t.Context(), p+"sem:group/x", string(id), "1")
				r.SAdd(t.Context(), p+"sems", "group/x")
			}},
		{"a task on the list that is gone", jobs.FoundOpen, "", "",
			func(t *testing.T, r *redis.Client, _, _ jobs.ID) {
				r.ZAdd(t.Context(), p+"open", redis.Z{Score: 1, Member: "0000000000"})
			}},
		{"an index that lies", jobs.FoundIndex, "", "",
			func(t *testing.T, r *redis.Client, _, _ jobs.ID) {
				r.SAdd(t.Context(), p+"sems", "group/x")
			}},
	} {
		t.Run(c.name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, w world) {
				q := open(t, w, "1")
				task := submit(t, q, spec(), 3)
				running := one(t, step(t, q, "1", 1)).Job
				id := jobs.NewID(task, "fw0002")
				if got := fsck(t, q, false); len(got) != 0 {
					t.Fatalf("before: %+v", got)
				}
				c.spoil(t, w.raw(t), id, running)
				got := fsck(t, q, false)
				if len(got) != 1 || got[0].What != c.what || got[0].Mended {
					t.Fatalf("found %+v, want %s", got, c.what)
				}
				if got = fsck(t, q, true); len(got) != 1 || !got[0].Mended {
					t.Fatalf("mended %+v", got)
				}
				if got = fsck(t, q, false); len(got) != 0 {
					t.Fatalf("after: %+v", got)
				}
				if c.outcome != "" {
					wantState(t, q, id, c.state, c.outcome)
				} else if c.state != "" {
					wantState(t, q, running, c.state, "")
				}
			})
		})
	}
}

// A script that broke off after the last job of a task left the task open for ever, and everybody
// who waited for its end waited for ever.
func TestFsckClosesATaskThatHasEnded(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		const p = "muster:{default}:"
		q := open(t, w, "1")
		task := submit(t, q, spec(), 1)
		running := one(t, step(t, q, "1", 1))
		r, ctx := w.raw(t), t.Context()
		score := r.ZScore(ctx, p+"open", string(task)).Val()
		step(t, q, "1", 0, ended(running, jobs.Succeeded))
		// The test undoes the last writes.
		r.HDel(ctx, p+"task:"+string(task), "ended")
		r.Persist(ctx, p+"task:"+string(task))
		r.ZAdd(ctx, p+"open", redis.Z{Score: score, Member: string(task)})
		if got, err := q.Task(ctx, task); err != nil || got.State == jobs.TaskEnded {
			t.Fatalf("before: %+v, %v", got, err)
		}
		for _, mend := range []bool{false, true} {
			got := fsck(t, q, mend)
			if len(got) != 1 || got[0].What != jobs.FoundOpen || got[0].Object != string(task) || got[0].Mended != mend {
				t.Fatalf("mend %t: %+v", mend, got)
			}
		}
		if got := fsck(t, q, false); len(got) != 0 {
			t.Errorf("after: %+v", got)
		}
		got, err := q.Task(ctx, task)
		if err != nil || got.State != jobs.TaskEnded || r.TTL(ctx, p+"task:"+string(task)).Val() <= 0 {
			t.Errorf("the task is %+v, %v", got, err)
		}

		// A task that was closed, and is still on the list.
		r.ZAdd(ctx, p+"open", redis.Z{Score: score, Member: string(task)})
		if got := fsck(t, q, true); len(got) != 1 || !got[0].Mended {
			t.Errorf("on the list again: %+v", got)
		}
		if got := fsck(t, q, false); len(got) != 0 {
			t.Errorf("in the end: %+v", got)
		}
	})
}

// The cleaner frees resources without an owner, and no others.
func TestTendFreesWhatNobodyHolds(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		const p = "muster:{default}:"
		q := open(t, w, "1")
		publish(t, q, 2, -1)
		guarded(t, q, disruptive("v-1"), 0, 2)
		held := drain(t, q, "1", 1)[0]
		r := w.raw(t)
		r.HSet(t.Context(), p+"sem:group/left", "0000000000:fw1", "1")
		r.SAdd(t.Context(), p+"sems", "group/left")
		if err := q.Tend(t.Context(), zone); err != nil {
			t.Fatal(err)
		}
		groups, err := q.Groups(t.Context())
		if err != nil || len(groups) != 1 || groups[0].Holder != held.Job {
			t.Errorf("groups: %+v, %v; want the one in use alone", groups, err)
		}
	})
}

// However many jobs hold a resource, fsck checks all of them, some in each call.
func TestFsckLooksAtAllHolders(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		const p = "muster:{default}:"
		q, r, ctx := open(t, w, "1"), w.raw(t), t.Context()
		submit(t, q, spec(), 1)
		left := []any{}
		for i := range 1500 {
			left = append(left, fmt.Sprintf("0000000000:fw%04d", i), "1")
		}
		r.HSet(ctx, p+"sem:site/a", left...)
		r.SAdd(ctx, p+"sems", "site/a")
		if got := fsck(t, q, true); len(got) != 1 || got[0].What != jobs.FoundHolder || !got[0].Mended {
			t.Errorf("found %+v", got)
		}
		if n := r.HLen(ctx, p+"sem:site/a").Val(); n > 0 {
			t.Errorf("%d that hold it were not looked at", n)
		}
		if got := fsck(t, q, false); len(got) > 0 {
			t.Errorf("after: %+v", got)
		}
	})
}

// A correction is an event that names who wanted it, and why; a correction that a server makes by
// itself names nobody.
func TestAMendIsAnEventOfWhoWantedIt(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		const p = "muster:{default}:"
		q, r := open(t, w, "1"), w.raw(t)
		submit(t, q, spec(), 1)
		for note, want := range map[string]string{
			"mended by alice: a \"restore\"": "orphan: its task is gone; mended by alice: a \"restore\"",
			"":                               "orphan: its task is gone"} {
			r.ZAdd(t.Context(), p+"queue", redis.Z{Score: 1, Member: "0000000000:fw1"})
			if f, err := q.Fsck(t.Context(), zone, true, note); err != nil || len(f.Findings) != 1 {
				t.Fatalf("%+v, %v", f, err)
			}
			list, err := r.XRevRangeN(t.Context(), p+"events", "+", "-", 1).Result()
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
			detail, _ := json.Marshal(map[string]string{"note": want})
			if got := fmt.Sprint(list[0].Values); !strings.Contains(got, "mend 0000000000:fw1 "+string(detail)) {
				t.Errorf("by %q: %s, want %s", note, got, detail)
			}
		}
	})
}

package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/testkit/queuetest"
)

// publish publishes an inventory of hosts fw0000…, with a group for each two of them and one site
// for all.
func publish(t *testing.T, q *queuetest.Queue, hosts, site int) {
	t.Helper()
	if err := publishTo(t.Context(), q, hosts, site); err != nil {
		t.Fatal(err)
	}
}

func publishTo(ctx context.Context, q *queuetest.Queue, hosts, site int) error {
	list := make([]fleet.Host, hosts)
	for i := range list {
		list[i] = fleet.Host{Name: fmt.Sprintf("fw%04d", i), Zone: zone, Customer: "acme",
			Group: fmt.Sprintf("pair-%d", i/2), Labels: map[string]string{"site": "zrh1"}}
		if i%2 == 1 {
			list[i].Customer = "beta"
		}
	}
	var limits []fleet.Limit
	if site >= 0 {
		limits = []fleet.Limit{{Name: "site/zrh1", Max: site, Zone: zone}}
	}
	return q.Publish(ctx, fmt.Sprint("v", site), list, limits)
}

// guarded submits a task on hosts from fw<from> on.
func guarded(t *testing.T, q *queuetest.Queue, s jobs.Spec, from, n int) jobs.TaskID {
	t.Helper()
	task, hosts := newTask(s, from+n)
	task.Total, task.Guarded = n, true
	hosts[zone] = hosts[zone][from:]
	if err := q.Submit(t.Context(), task, hosts, nil); err != nil {
		t.Fatal(err)
	}
	return task.ID
}

func disruptive(version string) jobs.Spec {
	s := spec()
	s.Inventory, s.Disruptive = version, true
	return s
}

// A new, raised, lowered or removed limit also counts for tasks that were submitted before, even
// for tasks that had no limit until then.
func TestALimitHoldsForTasksThatAreOlder(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 12, -1)
		s := spec()
		s.Inventory = "v-1"
		submit(t, q, s, 12)
		first := step(t, q, "1", 1).Jobs[0] // it runs, and counts against nothing
		end := func(list []jobs.Grant) {
			for _, g := range list {
				step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindEnd,
					Outcome: jobs.Succeeded})
			}
		}
		var running []jobs.Grant
		for _, now := range []struct{ limit, more int }{{2, 2}, {4, 2}, {3, 0}} {
			publish(t, q, 12, now.limit)
			got := drain(t, q, "2", 8)
			if running = append(running, got...); len(got) != now.more {
				t.Fatalf("at a limit of %d %d more start, want %d", now.limit, len(got), now.more)
			}
		}
		end(running[:2])
		if got := drain(t, q, "2", 8); len(got) != 1 {
			t.Fatalf("%d start with room for one", len(got))
		}
		end(running[2:])
		end([]jobs.Grant{first})
		publish(t, q, 12, -1)
		if got := drain(t, q, "2", 8); len(got) < 3 {
			t.Fatalf("without a limit %d start", len(got))
		}
	})
}

// drain takes jobs until none is left, without ending any.
func drain(t *testing.T, q *queuetest.Queue, slot string, want int) []jobs.Grant {
	t.Helper()
	var all []jobs.Grant
	for range 1000 {
		r := step(t, q, slot, want)
		all = append(all, r.Jobs...)
		if r.Status != jobs.StatusJobs && r.Status != jobs.StatusMore {
			return all
		}
	}
	t.Fatal("a take never comes to an end")
	return nil
}

// Redis has forgotten who holds a group, and a second job got it. When the first job is reported
// again, or fsck finds both, no other job disturbs the group before a person has looked.
func TestTwoHoldersOfAGroupFreezeIt(t *testing.T) {
	for _, finds := range []string{"the child says what it holds", "fsck"} {
		t.Run(finds, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, w world) {
				const p = "muster:{" + zone + "}:"
				first, q := open(t, w, "1"), open(t, w, "2")
				publish(t, q, 2, -1)
				id := guarded(t, q, disruptive("v-1"), 0, 2)
				a := one(t, step(t, first, "1", 1))
				r, sem := w.raw(t), p+"sem:group/pair-0"
				r.HDel(t.Context(), sem, string(a.Job)) // as after lost writes
				if finds != "fsck" {
					r.HDel(t.Context(), p+"task:"+string(id), ":"+a.Job.Host())
					r.HDel(t.Context(), p+"locks", a.Job.Host())
					r.ZRem(t.Context(), p+"again", string(a.Job))
					r.HIncrBy(t.Context(), p+"task:"+string(id), "running", -1)
				}
				b := one(t, step(t, q, "2", 1))
				if finds == "fsck" {
					r.HSet(t.Context(), sem, string(a.Job), int64(a.Token))
					got, err := q.Fsck(t.Context(), zone, true, "")
					if err != nil || len(got.Findings) != 1 || got.Findings[0].What != jobs.FoundOver {
						t.Fatalf("fsck: %+v, %v", got, err)
					}
				} else {
					r.HSet(t.Context(), p+"zone", "epoch", "1")
					if _, err := first.Stops(t.Context(), zone, []jobs.ID{a.Job}); err != nil {
						t.Fatal(err)
					}
				}
				step(t, first, "1", 0, ended(a, jobs.Succeeded))
				step(t, q, "2", 0, ended(b, jobs.Succeeded))
				groups, err := q.Groups(t.Context())
				if err != nil || len(groups) != 1 || groups[0].Frozen == "" {
					t.Errorf("groups: %+v, %v; want one that is frozen", groups, err)
				}
				guarded(t, q, disruptive("v-1"), 0, 1)
				if got := drain(t, q, "2", 1); len(got) > 0 {
					t.Errorf("taken from a frozen group: %v", got)
				}
			})
		})
	}
}

func TestOneOfAGroupIsDisturbedAtATime(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 4, -1)
		id := guarded(t, q, disruptive("v-1"), 0, 4)
		first := drain(t, q, "1", 4)
		if len(first) != 2 || first[0].Job.Host() != "fw0000" || first[1].Job.Host() != "fw0002" {
			t.Fatalf("handed out %v, want one of each pair", first)
		}
		wantState(t, q, jobs.NewID(id, "fw0001"), jobs.Blocked, "")
		if j := info(t, q, jobs.NewID(id, "fw0001")); j.Waits != "group/pair-0" {
			t.Errorf("it waits for %q", j.Waits)
		}
		// A task that does not disturb its hosts needs no group.
		calm := spec()
		calm.Inventory = "v-1"
		guarded(t, q, calm, 1, 1)
		if got := drain(t, q, "2", 1); len(got) != 1 || got[0].Job.Host() != "fw0001" {
			t.Fatalf("handed out %v, want the calm job on fw0001", got)
		}
		groups, err := q.Groups(t.Context())
		if err != nil || len(groups) != 2 || groups[0].Holder != first[0].Job || groups[0].Waits != 1 {
			t.Errorf("groups: %+v, %v", groups, err)
		}
		// A probe keeps the group; an outcome releases it to the other.
		verify := jobs.Result{Job: first[0].Job, Token: first[0].Token, Kind: jobs.KindVerify,
			Delay: time.Hour}
		if r := step(t, q, "1", 1, verify, ended(first[1], jobs.Succeeded)); len(r.Jobs) == 0 {
			r = step(t, q, "1", 1)
			if g := one(t, r); g.Job.Host() != "fw0003" {
				t.Errorf("handed out %s, want the other of the second pair", g.Job)
			}
		} else if r.Jobs[0].Job.Host() != "fw0003" {
			t.Errorf("handed out %s, want the other of the second pair", r.Jobs[0].Job)
		}
		wantState(t, q, jobs.NewID(id, "fw0001"), jobs.Blocked, "")
	})
}

func TestAnUnknownEndFreezesTheGroup(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 2, -1)
		id := guarded(t, q, disruptive("v-1"), 0, 2)
		g := drain(t, q, "1", 1)[0]
		end := ended(g, jobs.Unknown)
		end.Error = "the worker vanished"
		step(t, q, "1", 0, end)
		if got := drain(t, q, "1", 2); len(got) != 0 {
			t.Fatalf("handed out %v while the group is frozen", got)
		}
		groups, err := q.Groups(t.Context())
		if err != nil || len(groups) != 1 || groups[0].Job != g.Job ||
			groups[0].Frozen != end.Error || groups[0].Holder != "" {
			t.Fatalf("groups: %+v, %v", groups, err)
		}
		c, err := q.ClearGroup(t.Context(), "pair-0", "alice: looked at it")
		if err != nil || c.Already || c.Was != end.Error || c.Job != g.Job {
			t.Fatalf("clear: %+v, %v", c, err)
		}
		if got := drain(t, q, "1", 2); len(got) != 1 || got[0].Job != jobs.NewID(id, "fw0001") {
			t.Fatalf("handed out %v after the group was cleared", got)
		}
		if c, err := q.ClearGroup(t.Context(), "pair-0", "again"); err != nil || !c.Already {
			t.Errorf("clear again: %+v, %v", c, err)
		}
		if _, err := q.ClearGroup(t.Context(), "pair-9", ""); err == nil {
			t.Error("a group that nobody has can be cleared")
		}
	})
}

// A job that nobody has in hand is cancelled between two steps of its on_fail: if anything was
// disturbed, its host is only half restored.
func TestACancelBetweenTwoStepsOfAnOnFailFreezesTheGroup(t *testing.T) {
	const undoing = `{"failed":{"step":1,"outcome":"failed"}`
	for name, tt := range map[string]struct {
		saved  string
		frozen bool
	}{
		"disturbed":      {undoing + `,"disturbed":true}`, true},
		"may still act":  {`{"failed":{"step":1,"outcome":"timeout","keep":true}}`, true},
		"only looked at": {undoing + `}`, false},
		"in a main step": {`{"saved":{"x":"\"failed\":{"},"disturbed":true}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, w world) {
				q := open(t, w, "1")
				publish(t, q, 2, -1)
				for _, waits := range []bool{true, false} { // when it is cancelled
					id := guarded(t, q, disruptive("v-1"), 0, 2)
					g := byHost(drain(t, q, "1", 2))["fw0000"]
					again := jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry, Step: 3,
						Saved: tt.saved, Delay: time.Hour, Error: "the connection was lost"}
					if waits {
						step(t, q, "1", 0, again)
					}
					if _, err := q.CancelJobs(t.Context(), []jobs.ID{g.Job}, "bob: no"); err != nil {
						t.Fatal(err)
					}
					if !waits {
						step(t, q, "1", 0, again)
					}
					j := wantState(t, q, g.Job, jobs.Ended, jobs.Cancelled)
					got := drain(t, q, "1", 2)
					if frozen := len(got) == 0; frozen != tt.frozen {
						t.Fatalf("waits %t: %s; then handed out %v", waits, j.Error, got)
					}
					if tt.frozen {
						if _, err := q.ClearGroup(t.Context(), "pair-0", "alice: looked at it"); err != nil {
							t.Fatal(err)
						}
						got = drain(t, q, "1", 2)
					}
					if len(got) != 1 || got[0].Job != jobs.NewID(id, "fw0001") {
						t.Fatalf("handed out %v after the group was cleared", got)
					}
					step(t, q, "1", 0, ended(got[0], jobs.Succeeded))
				}
			})
		})
	}
}

// In a task that proves its groups the second host of a group does not begin if the first did not
// succeed. Other groups and other tasks continue.
func TestTheNextOfAGroupBeginsWhenTheOneBeforeHasSucceeded(t *testing.T) {
	for _, o := range jobs.Outcomes() {
		t.Run(string(o), func(t *testing.T) {
			eachRedis(t, func(t *testing.T, w world) {
				q := open(t, w, "1")
				publish(t, q, 4, -1)
				id := proving(t, q, 4)
				step(t, q, "1", 0, ended(byHost(drain(t, q, "1", 4))["fw0000"], o))
				got := byHost(drain(t, q, "1", 4))
				if !o.Fails(false) {
					if got["fw0001"].Job == "" {
						t.Fatalf("handed out %v, want the second one", got)
					}
					return
				}
				if o == jobs.Unknown { // not even after a person has looked at the first
					if _, err := q.ClearGroup(t.Context(), "pair-0", "x"); err != nil {
						t.Fatal(err)
					}
					got = byHost(drain(t, q, "1", 4))
				}
				j := wantState(t, q, jobs.NewID(id, "fw0001"), jobs.Ended, jobs.Skipped)
				if want := "fw0000 of its group ended " + string(o); j.Error != want || len(got) != 0 {
					t.Errorf("it was skipped because %q, want %q; handed out %v", j.Error, want, got)
				}
				wantState(t, q, jobs.NewID(id, "fw0002"), jobs.Running, "")
				guarded(t, q, disruptive("v-1"), 0, 2)
				if got := drain(t, q, "1", 4); len(got) != 1 {
					t.Errorf("of another task it got %v", got)
				}
			})
		})
	}
}

// Two jobs that wait for their windows after some steps have released their group.
func TestWhoIsHalfWayIsNotGoneOnWithEither(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		if w.pass == nil {
			return // time must pass between two calls only
		}
		q := open(t, w, "1")
		publish(t, q, 2, -1)
		id := proving(t, q, 2)
		for _, host := range []string{"fw0000", "fw0001"} {
			g := byHost(drain(t, q, "1", 1))[host]
			step(t, q, "1", 0, jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindDefer, Step: 5, Release: true,
				Saved: `{"saved":{"todo":"install"}}`, Delay: time.Second})
		}
		w.pass(time.Minute)
		step(t, q, "1", 0, ended(drain(t, q, "1", 1)[0], jobs.RolledBack))
		if got := drain(t, q, "1", 1); len(got) != 0 {
			t.Errorf("handed out %v", got)
		}
		j := wantState(t, q, jobs.NewID(id, "fw0001"), jobs.Ended, jobs.Skipped)
		if want := "stopped after step 5: fw0000 of its group ended rolled_back"; j.Error != want {
			t.Errorf("it was skipped because %q, want %q", j.Error, want)
		}
	})
}

// proving submits a task that proves its groups.
func proving(t *testing.T, q *queuetest.Queue, hosts int) jobs.TaskID {
	t.Helper()
	s := disruptive("v-1")
	s.ProveGroup = true
	return guarded(t, q, s, 0, hosts)
}

func byHost(list []jobs.Grant) map[string]jobs.Grant {
	out := map[string]jobs.Grant{}
	for _, g := range list {
		out[g.Job.Host()] = g
	}
	return out
}

func TestALostWorkerKeepsTheGroup(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 2, -1)
		guarded(t, q, disruptive("v-1"), 0, 2)
		g := drain(t, q, "1", 1)[0]
		if _, err := q.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "killed"}); err != nil {
			t.Fatal(err)
		}
		got := drain(t, q, "2", 2)
		if len(got) != 1 || got[0].Job != g.Job || got[0].Mode != jobs.ModeLost {
			t.Fatalf("handed out %v, want the lost job alone", got)
		}
		step(t, q, "2", 0, ended(got[0], jobs.Succeeded))
		if got := drain(t, q, "2", 2); len(got) != 1 {
			t.Fatalf("handed out %v, want the other of the pair", got)
		}
	})
}

func TestALimitIsNeverExceededAndTasksTakeTurns(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 64, 3)
		s := spec()
		s.Inventory = "v3"
		big := guarded(t, q, s, 0, 60)
		inHand := drain(t, q, "1", 8)
		if len(inHand) != 3 {
			t.Fatalf("%d jobs at a site with a limit of 3", len(inHand))
		}
		small := guarded(t, q, s, 60, 4)
		if got := drain(t, q, "1", 8); len(got) != 0 {
			t.Fatalf("handed out %v beyond the limit", got)
		}
		var order []jobs.TaskID
		for len(order) < 64 {
			if len(inHand) == 0 {
				t.Fatalf("nothing is in hand after %d of 64 jobs", len(order))
			}
			g := inHand[0]
			order = append(order, g.Job.Task())
			step(t, q, "1", 0, ended(g, jobs.Succeeded))
			inHand = append(inHand[1:], drain(t, q, "1", 8)...)
			if len(inHand) > 3 {
				t.Fatalf("%d jobs at a site with a limit of 3", len(inHand))
			}
		}
		last := 0
		for i, id := range order {
			if id == small {
				last = i
			}
		}
		// Three jobs of the big task were in hand; after that the two take turns.
		if last > 3+2*4+1 {
			t.Errorf("the last of the small task was the %d. job: %v", last+1, order)
		}
		if slices.Index(order, big) != 0 {
			t.Errorf("the first job was not of the big task: %v", order[:4])
		}
	})
}

func TestRaisingALimitWakes(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 10, 1)
		s := spec()
		s.Inventory = "v1"
		guarded(t, q, s, 0, 10)
		if got := drain(t, q, "1", 8); len(got) != 1 {
			t.Fatalf("%d jobs, want 1", len(got))
		}
		publish(t, q, 10, 4)
		if got := drain(t, q, "1", 8); len(got) != 3 {
			t.Fatalf("%d jobs came when the limit was raised from 1 to 4, want 3", len(got))
		}
		limits, err := q.Limits(t.Context())
		if err != nil || len(limits) != 1 || limits[0].Max != 4 || limits[0].Used != 4 ||
			limits[0].Waits != 6 {
			t.Errorf("limits: %+v, %v", limits, err)
		}
		publish(t, q, 10, -1)
		if got := drain(t, q, "1", 8); len(got) != 6 {
			t.Fatalf("%d jobs came when the limit was gone, want 6", len(got))
		}
	})
}

// All or none: a job that waits for one resource holds no other.
func TestNobodyHoldsWhileWaiting(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 4, 1)
		s := disruptive("v1")
		guarded(t, q, s, 0, 4)
		if got := drain(t, q, "1", 4); len(got) != 1 {
			t.Fatalf("%d jobs, want 1", len(got))
		}
		groups, err := q.Groups(t.Context())
		if err != nil || len(groups) != 1 {
			t.Errorf("groups in use: %+v, %v; want the one of the job in hand", groups, err)
		}
	})
}

// A cancelled job waits for nothing, even while it is still on the list.
func TestCancelledJobsAreNoWaiters(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 4, 1)
		s := spec()
		s.Inventory = "v1"
		guarded(t, q, s, 0, 1)
		other := guarded(t, q, s, 1, 3)
		step(t, q, "1", 4)
		for _, want := range []int{3, 0} {
			l, err := q.Limits(t.Context())
			if err != nil || len(l) != 1 || l[0].Waits != want {
				t.Fatalf("%+v, %v, want %d that wait", l, err, want)
			}
			if _, err := q.Cancel(t.Context(), other, "bob"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The events name the person who clears a group in use, and so its earlier markers.
func TestAClearOfAGroupInUseIsAnEvent(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 2, -1)
		guarded(t, q, disruptive("v-1"), 0, 2)
		drain(t, q, "1", 1)
		if c, err := q.ClearGroup(t.Context(), "pair-0", "alice: looked"); err != nil || !c.Already {
			t.Fatalf("clear: %+v, %v", c, err)
		}
		list, _, err := q.Events(t.Context(), zone, "", 100, 0)
		if err != nil || len(list) == 0 {
			t.Fatal(list, err)
		}
		last := list[len(list)-1]
		if last.Event != "clear" || last.Object != "pair-0" || !strings.Contains(fmt.Sprint(last.Detail), "alice: looked") {
			t.Errorf("the last event is %+v", last)
		}
	})
}

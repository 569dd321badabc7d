package queue_test

import (
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// The score of a running job says when to look at it, its lock whether it is lost.
func TestALockThatOutlivesItsScoreDecides(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		again := "muster:{" + zone + "}:again"
		c := w.raw(t)
		c.ZAdd(t.Context(), again, redis.Z{Score: 1, Member: string(g.Job)})
		if r := step(t, q, "2", 1); len(r.Jobs) != 0 {
			t.Fatalf("handed out while its lock holds: %+v", r.Jobs)
		}
		wantState(t, q, g.Job, jobs.Running, "")
		locked := float64(int64(g.Token) + g.Timeout.Microseconds())
		if at := c.ZScore(t.Context(), again, string(g.Job)).Val(); at < locked {
			t.Errorf("it is looked at %.0f µs before the end of its lock", locked-at)
		}
		if r := step(t, q, "1", 0, ended(g, jobs.Succeeded)); len(r.Late) != 0 {
			t.Error("its result did not count")
		}
	})
}

// A server dies after the first chunk of a cancel: takes still respect the flag of the task.
func TestATakeObeysTheFlagOfACancel(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		dying, q := open(t, w, ""), open(t, w, "1")
		id := submit(t, q, spec(), 700)
		died := errors.New("the server died")
		dying.BeforeScript(string(id), func(n int) error {
			if n == 2 {
				return died
			}
			return nil
		})
		if _, err := dying.Cancel(t.Context(), id, "alice"); !errors.Is(err, died) {
			t.Fatalf("cancel: %v", err)
		}
		if got, err := q.Task(t.Context(), id); err != nil || got.Outcomes[jobs.Cancelled] != 50 {
			t.Fatalf("after the first chunk: %+v, %v", got, err)
		}
		if got := drain(t, q, "1", 16); len(got) != 0 {
			t.Errorf("%d jobs of a cancelled task were handed out", len(got))
		}
		if got, err := q.Task(t.Context(), id); err != nil || got.Outcomes[jobs.Cancelled] != 700 {
			t.Errorf("in the end: %+v, %v", got, err)
		}
	})
}

// Two locks have ended unnoticed, and the host is free: only the token says which attempt may
// continue.
func TestOnlyTheLatestAttemptGoesOn(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		c, p := w.raw(t), "muster:{"+zone+"}:"
		g := one(t, step(t, q, "1", 1))
		c.HDel(t.Context(), p+"locks", g.Job.Host())
		c.ZAdd(t.Context(), p+"again", redis.Z{Score: 1, Member: string(g.Job)})
		l := one(t, step(t, q, "2", 1))
		c.HDel(t.Context(), p+"locks", g.Job.Host())
		for want, token := range map[jobs.Verdict]jobs.Token{jobs.Stale: g.Token, jobs.Go: l.Token} {
			v, err := q.Checkpoint(t.Context(), zone, jobs.Checkpoint{Job: g.Job, Token: token, Step: 1})
			if err != nil || v != want {
				t.Errorf("verdict %s for token %d, want %s (%v)", v, token, want, err)
			}
		}
	})
}

package backup

import (
	"strings"
	"testing"

	"muster/jobs"
	"muster/testkit/sqltest"
)

// If SQL has survived, work stays as it was at the time of the backup, and nothing starts before
// history was asked what has ended since, not even after the halt. Chains and missed ticks are
// stopped, and tokens stay away unless somebody wants them.
func TestWithSQLThatSurvivedHistoryIsAskedFirst(t *testing.T) {
	t.Parallel()
	old, other := newHouse(t, sqltest.SQLite(t), 1), newHouse(t, sqltest.SQLite(t), 1)
	if err := old.q.KeepHistory(t.Context(), zone, ""); err != nil {
		t.Fatal(err)
	}
	id := old.submit("a", 10, jobs.Spec{})
	old.run(4)
	old.redis.Do(t, "SADD", "muster:{hub}:chains", "0123456789")
	old.redis.Do(t, "HSET", "muster:{hub}:schedules", "nightly", "{}")
	old.redis.Do(t, "HSET", "muster:{hub}:ticks", "nightly", `{"pending":["2026-01-01T00:00:00Z"]}`)
	old.redis.Do(t, "HSET", "muster:{hub}:tokens", "t1", "mac")
	old.redis.Do(t, "HSET", "muster:{hub}:sessions", "s1", "mac")
	old.redis.Do(t, "SET", "muster:{hub}:leader:tend", "1 server1", "PX", "60000") // it lives
	path := old.backup()
	old.past(old.exchange(3)...)
	if _, err := old.q.Halt(t.Context(), "bob: later"); err != nil {
		t.Fatal(err)
	}

	other.store = old.store
	b := other.restoring(orders{path: path, proceed: true, replace: true})
	if err := b.ready(t.Context()); err == nil || !strings.Contains(err.Error(), "--continue is only for") {
		t.Errorf("work continues of a house that lived: %v", err)
	}
	r := other.bring(orders{path: path, keepSQL: true})
	if r.Unknown != 0 || r.Chains != 1 || r.Schedules != 1 || r.Rows != 0 {
		t.Errorf("restored: %+v", r)
	}
	other.want(id, map[string]int{"succeeded": 4, "queued": 6})
	if _, err := other.q.Lift(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	if r := other.step(5); r.Status != jobs.StatusFrozen {
		t.Errorf("%d jobs are handed out (%s)", len(r.Jobs), r.Status)
	}
	if d, err := other.q.Debts(t.Context(), []string{zone}); err != nil || len(d) != 1 || d[0].Owed == "" {
		t.Errorf("history need not be asked: %+v, %v", d, err)
	}
	for _, c := range []struct {
		key, field string
		want       bool
	}{{"tokens", "t1", false}, {"sessions", "s1", false}, {"chain:0123456789", "broken", true}} {
		if n := other.redis.Do(t, "HEXISTS", "muster:{hub}:"+c.key, c.field); (n == int64(1)) != c.want {
			t.Errorf("%s %s is there: %v, want %v", c.key, c.field, n, c.want)
		}
	}
	text, _ := other.redis.Do(t, "HGET", "muster:{hub}:ticks", "nightly").(string)
	if !strings.Contains(text, `"pending":null`) {
		t.Errorf("ticks that waited are made up for: %s", text)
	}
	other.bring(orders{path: path, keepSQL: true, replace: true, tokens: true})
	if n := other.redis.Do(t, "HEXISTS", "muster:{hub}:tokens", "t1"); n != int64(1) {
		t.Error("tokens stay away although somebody wants them")
	}
}

package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/trust"
	"muster/windows"
)

// clerk is a server with the key, at a time.
type clerk struct {
	t *testing.T
	*hub.Timetable
	now time.Time
}

func newClerk(t *testing.T, q *queuetest.Queue) *clerk {
	c := &clerk{t: t, now: time.Now()}
	c.Timetable = q.SignedBy(trust.NewNotary(func() (serverkey.Keys, error) {
		return serverkey.Parse([]byte(serverkey.File("i1234", [serverkey.Size]byte{1})))
	}, func() time.Time { return c.now }))
	return c
}

// setting changes the timetable.
type setting interface {
	Timetable(ctx context.Context) (windows.Timetable, error)
	SetTimetable(ctx context.Context, t windows.Timetable, e jobs.Alert) (int64, error)
}

// freeze freezes customers.
func freeze(t *testing.T, q setting, customers ...string) {
	t.Helper()
	table, err := q.Timetable(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	table.Freezes = nil
	for _, name := range customers {
		table.Freezes = append(table.Freezes, windows.FreezeOrder{Name: name, Level: "customer", Of: name,
			From: time.Now(), Reason: "r", By: "x"})
	}
	if _, err := q.SetTimetable(t.Context(), table, jobs.Alert{Event: "x", Object: "w"}); err != nil {
		t.Fatal(err)
	}
}

// stated returns the statement in Redis, after it has checked what workers read for customers.
func (c *clerk) stated(customers ...string) *trust.Times {
	c.t.Helper()
	k, err := c.Kept(c.t.Context(), trust.TimesAsked{})
	if err != nil {
		c.t.Fatal(err)
	}
	by, err := trust.ServersOf(sure(serverkey.Parse([]byte(serverkey.File("i1234", [serverkey.Size]byte{1})))), c.now)
	if err != nil {
		c.t.Fatal(err)
	}
	s, err := trust.ReadTimes(k.Statement, k.Signature, "i1234", by)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range customers {
		scope := "customer " + name
		n, _ := s.ShareOf(scope)
		k, err := c.Kept(c.t.Context(), trust.TimesAsked{Scopes: []string{scope}, Shares: []int{n}})
		if err != nil {
			c.t.Fatal(err)
		}
		share, err := s.Share(n, k.Shares[0])
		if err == nil {
			err = trust.ExcerptHolds(share, scope, k.Excerpts[0])
		}
		if err != nil || k.Excerpts[0] == nil {
			c.t.Errorf("%s: %v", scope, err)
		}
	}
	return s
}

func sure[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func always(int64) error { return nil }

// The statement of the timetable changes with it, and says again that it is in force.
func TestTheTimetableIsStated(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		c := newClerk(t, q)
		if err := c.Restate(t.Context(), always); err != nil {
			t.Fatal(err)
		}
		if _, doubt, err := c.Proven(t.Context()); doubt != nil || err != nil || c.stated().Version != 0 {
			t.Errorf("there never was one: %v, %v", doubt, err)
		}
		freeze(t, c.Timetable, "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8")
		first := c.stated("c0", "c3", "c8")
		if first.Version != 1 || len(first.Shares) != 3 {
			t.Errorf("%+v", first)
		}
		freeze(t, c.Timetable, "c3")
		second := c.stated("c3")
		if !second.Since.After(first.Since) || len(second.Shares) != 1 {
			t.Errorf("%+v", second)
		}
		fields := sure(redistest.Raw(t, w.cfg, "hub").HKeys(t.Context(), "muster:{hub}:windows").Result())
		if text := strings.Join(fields, ","); strings.Contains(text, "share:1") || strings.Contains(text, "c8") {
			t.Errorf("parts of the one before are there: %s", text)
		}
		c.now = c.now.Add(time.Minute)
		if err := c.Restate(t.Context(), always); err != nil {
			t.Fatal(err)
		}
		if again := c.stated("c3"); !again.At.Equal(c.now) || !again.Since.Equal(second.Since) {
			t.Errorf("%+v: want it to be said at %s", again, c.now)
		}
	})
}

// A server says of nothing that it is in force that it has not signed, or that was replaced, and
// writes no excerpts under its name.
func TestAServerStatesOnlyWhatItBelieves(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		raw := redistest.Raw(t, w.cfg, "hub")
		const key = "muster:{hub}:windows"
		c := newClerk(t, q)
		refused := func(what string) {
			t.Helper()
			err := c.Restate(t.Context(), always)
			if _, doubt, e := c.Proven(t.Context()); err == nil || doubt == nil || e != nil {
				t.Errorf("%s: %v, %v, %v", what, err, doubt, e)
			}
		}
		if err := c.Restate(t.Context(), always); err != nil {
			t.Fatal(err)
		}
		raw.Del(t.Context(), key)
		if err := c.Restate(t.Context(), always); err != nil {
			t.Errorf("Redis has lost that there never was one: %v", err)
		}
		freeze(t, c.Timetable, "c0")
		before := sure(raw.HGetAll(t.Context(), key).Result())
		freeze(t, c.Timetable, "c0", "c1")
		good := sure(raw.HGetAll(t.Context(), key).Result())
		raw.HDel(t.Context(), key, "share:0", "share:1", "excerpts")
		if put, err := q.PutExcerpts(t.Context()); !put || err != nil {
			t.Fatal(put, err)
		}
		raw.HDel(t.Context(), key, "share:0", "share:1", "excerpts")
		if put, err := c.PutExcerpts(t.Context()); !put || err != nil {
			t.Fatal(put, err)
		}
		c.stated("c0", "c1")
		raw.HSet(t.Context(), key, before)
		refused("the one before")
		raw.Del(t.Context(), key)
		refused("none at all")
		raw.HSet(t.Context(), key, good)
		if err := c.Restate(t.Context(), always); err != nil {
			t.Errorf("the last one: %v", err)
		}
		freeze(t, q, "c9") // a server without the key
		refused("one of a server without a key")
		if put, err := c.PutExcerpts(t.Context()); put || err != nil {
			t.Error(put, err)
		}
	})
}

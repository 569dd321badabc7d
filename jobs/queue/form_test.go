package queue_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"muster/jobs"
	"muster/jobs/queue/form"
	"muster/testkit/redistest"
)

// whole returns what Redis has of the zone of the tests, and of a task of it.
func whole(t *testing.T, w world, id jobs.TaskID) string {
	t.Helper()
	c, key := w.raw(t), "muster:{"+zone+"}:"
	return fmt.Sprint(c.HGetAll(t.Context(), key+"zone"), c.HGetAll(t.Context(), key+"locks"),
		c.HGetAll(t.Context(), key+"task:"+string(id)), c.ZRangeWithScores(t.Context(), key+"queue", 0, -1),
		c.ZRangeWithScores(t.Context(), key+"again", 0, -1), c.XLen(t.Context(), key+"events"),
		c.ZRange(t.Context(), key+"tasks", 0, -1))
}

// A muster that is older than the data changes nothing, and says which version it takes.
func TestAnOlderMusterChangesNothing(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		publish(t, q, 3, 1)
		id := submit(t, q, spec(), 3)
		g := one(t, step(t, q, "1", 1))
		if err := q.Declare(t.Context(), "0.1.0"); err != nil {
			t.Fatal(err)
		}
		c := w.raw(t)
		next := strconv.Itoa(form.Mine + 1)
		c.HSet(t.Context(), "muster:{default}:zone", "form", next, "form_by", "0.9.0")
		before := whole(t, w, id)
		refused := func(what string, err error) {
			t.Helper()
			var newer *form.Error
			if !errors.As(err, &newer) || newer.Where != "zone default" || newer.By != "0.9.0" ||
				newer.Least != form.Mine+1 {
				t.Errorf("%s: %v, want that zone default has been written by muster 0.9.0", what, err)
			}
		}
		_, err := q.Step(t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Request: "late", Want: 1,
			Results: []jobs.Result{ended(g, jobs.Succeeded)}})
		refused("step", err)
		more, names := newTask(spec(), 1)
		refused("put", q.Submit(t.Context(), more, names, nil))
		_, err = q.Cancel(t.Context(), id, "cancelled by bob")
		refused("cancel", err)
		_, err = q.PauseZone(t.Context(), zone, "bob")
		refused("pause", err)
		refused("declare", q.Declare(t.Context(), "0.1.0"))
		if after := whole(t, w, id); after != before {
			t.Errorf("before:\n%s\nafter:\n%s", before, after)
		}

		refused("the start of a node", q.Check(t.Context(), []string{"east", zone}))

		c.HSet(t.Context(), "muster:{default}:zone", "form", strconv.Itoa(form.Mine))
		if r := step(t, q, "1", 1, ended(g, jobs.Succeeded)); len(r.Late) > 0 || len(r.Jobs) != 1 {
			t.Errorf("with the data of this version: %+v", r)
		}
	})
}

// A server that is older than the data of the hub gets no duty.
func TestAnOlderServerGetsNoDuty(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		if err := q.Declare(t.Context(), "0.1.0"); err != nil {
			t.Fatal(err)
		}
		term, err := q.Lead(t.Context(), "tend", "server 1", 0)
		if err != nil || !term.Mine {
			t.Fatalf("%+v, %v", term, err)
		}
		c := redistest.Raw(t, w.cfg, "hub")
		if by := c.HGet(t.Context(), "muster:{hub}:form", "form_by").Val(); by != "0.1.0" {
			t.Errorf("the hub was written by %q", by)
		}
		c.HSet(t.Context(), "muster:{hub}:form", "form", "77", "form_by", "2.0.0")
		var newer *form.Error
		_, err = q.Lead(t.Context(), "tend", "server 1", term.Number)
		if !errors.As(err, &newer) || newer.Where != "the hub" || newer.Least != 77 || newer.By != "2.0.0" {
			t.Errorf("lead: %v", err)
		}
		if err := q.Leave(t.Context(), "tend", term.Number); err != nil {
			t.Errorf("a duty that nobody may keep cannot be left: %v", err)
		}
		if err := q.Declare(t.Context(), "0.1.0"); !errors.As(err, &newer) {
			t.Errorf("declare: %v", err)
		}
	})
}

// A new zone has the form of the muster that made it.
func TestANewZoneHasAForm(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		if err := q.Enter(t.Context(), "east"); err != nil {
			t.Fatal(err)
		}
		got := redistest.Raw(t, w.cfg, "east").HGet(t.Context(), "muster:{east}:zone", "form").Val()
		if got != strconv.Itoa(form.Least) {
			t.Errorf("form %q", got)
		}
	})
}

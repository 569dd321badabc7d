package queue_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"muster/testkit/redistest"
)

// A function of Redis keeps its variables. The next call, of this zone or another, must not take
// facts of an earlier call for true.
func TestACallKnowsNothingOfTheOneBefore(t *testing.T) {
	t.Parallel()
	q := open(t, world{cfg: redistest.StartServer(t).Config()}, "1")
	publish(t, q, 8, -1)
	s := spec()
	s.Inventory = "v-1"
	pause := func(name string) {
		t.Helper()
		if _, err := q.PauseCustomer(t.Context(), name, "alice"); err != nil {
			t.Fatal(err)
		}
	}
	pause("acme")
	submit(t, q, s, 8)
	if got := drain(t, q, "1", 1); len(got) != 4 {
		t.Fatalf("handed out %d, want the 4 of beta", len(got))
	}
	pause("beta")
	if _, err := q.ResumeCustomer(t.Context(), "acme", "alice"); err != nil {
		t.Fatal(err)
	}
	got := drain(t, q, "1", 1)
	for _, g := range got {
		if h := g.Job.Host(); !strings.ContainsAny(h[len(h)-1:], "0246") { // traits alternate
			t.Errorf("handed out %s, whose customer is paused", g.Job)
		}
	}
	if len(got) != 4 {
		t.Errorf("handed out %d, want the 4 of acme", len(got))
	}
}

// Libraries of older versions do not pile up, and a server that still needs one loads it again.
func TestOldLibrariesAreRemoved(t *testing.T) {
	t.Parallel()
	s := redistest.StartServer(t)
	q, admin := open(t, world{cfg: s.Config()}, "1"), raw(t, s.Addr)
	submit(t, q, spec(), 2)
	for _, name := range []string{"a", "b", "c", "d"} {
		err := admin.FunctionLoad(t.Context(), "#!lua name=muster_step_"+name+
			"\nredis.register_function('muster_step_"+name+"', function() return 1 end)").Err()
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.FunctionLoad(t.Context(),
		"#!lua name=others\nredis.register_function('others', function() return 1 end)").Err(); err != nil {
		t.Fatal(err)
	}
	one(t, step(t, q, "1", 1))
	list, err := admin.FunctionList(t.Context(), redis.FunctionListQuery{}).Result()
	if err != nil || len(list) != 2 {
		t.Errorf("libraries are %+v, %v: want that of this version and somebody else's", list, err)
	}
	if err := admin.FunctionFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	one(t, step(t, q, "2", 1))
}

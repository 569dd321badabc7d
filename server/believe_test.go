package server_test

import (
	"fmt"
	"strings"
	"testing"

	"muster/history"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

// A thief has the Redis user of a node of zone "default". With it, they write ends of jobs of
// zone "eu" into the stream of their zone, and the jobs into their zone's part of a task.
func TestAStolenUserOfANodeFalsifiesNoEndOfAnotherZone(t *testing.T) {
	t.Parallel()
	s := redistest.StartServerWithUsers(t, redistest.UsersFile(t, "default", "eu"), nil)
	cfg := s.As(keys.RoleServer)
	store := openHistory(t, sqltest.SQLite(t))
	w := start(t, setup{redis: &cfg, history: store})
	both, far := w.submit(run("fw001,fw003")).Task, w.submit(run("vpn1")).Task
	thief := redistest.Login(t, s, "node")
	lie := func(words string) {
		t.Helper()
		if err := thief.Do(t.Context(), "XADD", "muster:{default}:events", "*", "e", words).Err(); err != nil {
			t.Fatal(err)
		}
	}
	admin := redistest.Login(t, s, "admin")
	for _, id := range []jobs.ID{jobs.NewID(both, "fw003"), jobs.NewID(far, "vpn1"), jobs.NewID(both, "nohost"),
		jobs.NewID("0000000000", "fw003")} { // of the last one, nobody knows the task
		lie(fmt.Sprintf(`take %s {"node":"n9","attempt":1}`+"\n"+`end %s {"outcome":"succeeded","exit":0}`, id, id))
	}
	lie(fmt.Sprintf("task %s {}", far))
	w.work("default", succeed)
	record, err := admin.HGet(t.Context(), "muster:{default}:task:"+string(both), ":fw001").Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := thief.HSet(t.Context(), "muster:{default}:task:"+string(both), "hosts:0", "fw001\nfw003\nnohost",
		"total", 2, "done", 2, "o:succeeded", 2, ":fw003", record, ":nohost", record).Err(); err != nil {
		t.Fatal(err)
	}
	w.work("eu", func(host string) jobs.Result { // in truth
		r := succeed(host)
		r.Outcome = jobs.Failed
		return r
	})
	waitFor(t, "the ends of all three jobs", func() bool {
		a, errA := store.Report(t.Context(), both)
		b, errB := store.Report(t.Context(), far)
		return errA == nil && errB == nil && len(a.Jobs) >= 2 && len(b.Jobs) == 1 && a.Task.State == jobs.TaskEnded
	})
	h := w.historian(store) // a new term compares all that Redis knows
	for range 3 {
		if _, err := h.RunOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	list, _, err := store.Jobs(t.Context(), history.Filter{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	got := map[jobs.ID]string{}
	for _, j := range list {
		got[j.ID] = fmt.Sprint(j.Outcome, " in ", j.Zone)
	}
	want := map[jobs.ID]string{jobs.NewID(both, "fw001"): "succeeded in default",
		jobs.NewID(both, "fw003"): "failed in eu", jobs.NewID(far, "vpn1"): "failed in eu"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("history has %v, want %v", got, want)
	}
	tries, err := store.Attempts(t.Context(), jobs.NewID(far, "vpn1"))
	if err != nil || len(tries) != 1 || tries[0].Node != "n1/1" {
		t.Errorf("attempts: %+v, %v", tries, err)
	}
	if n := strings.Count(w.log.String(), "a zone tells of jobs that are not in it"); n != 1 {
		t.Errorf("the log says it %d times, want once:\n%s", n, w.log)
	}
}

package backup

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"muster/api"
	"muster/history"
	"muster/internal/backupfile"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
	"muster/testkit/sqltest"
)

const zone = "default"

// house is a place of a test, with a handle for its work.
type house struct {
	place
	t     testing.TB
	redis *redistest.Server
	q     *queuetest.Queue
	last  string // position of SQL in the events
}

func newHouse(t testing.TB, sql history.Config, key byte) *house {
	t.Helper()
	h := &house{t: t, redis: redistest.StartServer(t)}
	cfg := h.redis.Config()
	var err error
	if h.q, err = queuetest.Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.q.Close() })
	if h.place.redis, err = queue.OpenLazy(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.place.redis.Close() })
	h.store, h.history = sqltest.Ready(t, sql), true
	if h.keys, err = serverkey.Parse([]byte(serverkey.File("testhouse", [serverkey.Size]byte{key}))); err != nil {
		t.Fatal(err)
	}
	h.audit = func(context.Context, string, string) (func(error) error, error) {
		return func(err error) error { return nil }, nil
	}
	return h
}

// submit submits a task for hosts a0000, a0001, …
func (h *house) submit(prefix string, hosts int, s jobs.Spec) jobs.TaskID {
	h.t.Helper()
	names := make([]string, hosts)
	for i := range names {
		names[i] = fmt.Sprintf("%s%04d", prefix, i)
	}
	s.Runbook, s.Operator, s.Timeout, s.Expire = "exec", "alice", time.Minute, jobs.DefaultExpire
	s.Retry, s.Created = jobs.DefaultPolicy(), jobs.MicrosOf(time.Now())
	task := jobs.Task{ID: jobs.NewTaskID(time.Now(), uint16(taskCount.next())), Spec: s, Total: hosts}
	if err := h.q.Submit(h.t.Context(), task, map[string][]string{zone: names}, nil); err != nil {
		h.t.Fatal(err)
	}
	return task.ID
}

type sequence struct {
	mu sync.Mutex
	n  int
}

func (s *sequence) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return s.n
}

var taskCount, request sequence

func (h *house) step(want int, results ...jobs.Result) jobs.Reply {
	h.t.Helper()
	r, err := h.q.Step(h.t.Context(), zone, jobs.Step{Node: "n1", Slot: "1", Want: want, Results: results,
		Request: fmt.Sprint("r", request.next())})
	if err != nil {
		h.t.Fatal(err)
	}
	return r
}

// run takes so many jobs, and ends them.
func (h *house) run(n int) {
	h.t.Helper()
	for n > 0 {
		ids := h.exchange(min(n, 20))
		if len(ids) == 0 {
			h.t.Fatalf("%d jobs are left, and none is handed out", n)
		}
		n -= len(ids)
	}
}

// states counts the jobs of a task by state or outcome.
func (h *house) states(id jobs.TaskID) map[string]int {
	h.t.Helper()
	out := map[string]int{}
	err := h.q.EachJob(h.t.Context(), id, 0, 500, func(list []jobs.JobInfo) error {
		for _, j := range list {
			if j.State == jobs.Ended {
				out[string(j.Outcome)]++
			} else {
				out[string(j.State)]++
			}
		}
		return nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return out
}

func (h *house) want(id jobs.TaskID, want map[string]int) {
	h.t.Helper()
	if got := h.states(id); !maps.Equal(got, want) {
		h.t.Errorf("task %s has %v, want %v", id, got, want)
	}
}

var identity = sync.OnceValue(func() *age.X25519Identity {
	k, err := age.GenerateX25519Identity()
	if err != nil {
		panic(err)
	}
	return k
})

// backup writes a backup, and returns its path.
func (h *house) backup() string {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "backup")
	_, err := h.create(h.t.Context(), backupfile.Recipients{identity().Recipient()}, target{path: path})
	if err != nil {
		h.t.Fatal(err)
	}
	return path
}

// restoring returns a restore into the house.
func (h *house) restoring(o orders) *restoring {
	h.t.Helper()
	f, err := os.Open(o.path)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { f.Close() })
	o.yes, o.reason = "testhouse", "the disk is gone"
	return &restoring{place: h.place, orders: o, own: backupfile.Identities{identity()}, file: f,
		in: strings.NewReader(""), say: h.t.Logf}
}

// bring restores a backup.
func (h *house) bring(o orders) Restored {
	h.t.Helper()
	b := h.restoring(o)
	if err := b.ready(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	if err := b.restore(h.t.Context()); err != nil {
		h.t.Fatal(err)
	}
	return b.r
}

// past stores ends in SQL, as the historian does.
func (h *house) past(ids ...jobs.ID) {
	h.t.Helper()
	var list []api.PastJob
	for _, id := range ids {
		list = append(list, api.PastJob{JobInfo: jobs.JobInfo{ID: id, Host: id.Host(), State: jobs.Ended,
			Outcome: jobs.Failed, Attempt: 1, Node: "n1/1", Started: jobs.Time{Time: time.Now()},
			Finished: jobs.Time{Time: time.Now()}}, Zone: zone, Runbook: "exec", Operator: "alice"})
	}
	after := h.last
	h.last = fmt.Sprintf("%d-0", request.next())
	_, err := h.store.Put(h.t.Context(), history.Batch{Zone: zone, After: after, Last: h.last, Entries: -1,
		Ended: list}, time.Now())
	if err != nil {
		h.t.Fatal(err)
	}
}

// Jobs that were open at the time of the backup may have run since. They end unknown, unless SQL
// knows their ends; nothing of it is handed out, and nothing else either, until a person lifts the halt.
func TestNothingOpenRunsAfterARestore(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]func() history.Config{
		"SQLite":     func() history.Config { return sqltest.SQLite(t) },
		"PostgreSQL": func() history.Config { return sqltest.Shared(t).Config(t) },
	} {
		t.Run(name, func(t *testing.T) {
			old, other := newHouse(t, sql(), 1), newHouse(t, sql(), 1)
			if err := old.q.KeepHistory(t.Context(), zone, ""); err != nil {
				t.Fatal(err)
			}
			id, done := old.submit("a", 600, jobs.Spec{}), old.submit("b", 3, jobs.Spec{})
			old.run(5)
			inHand := old.step(4).Jobs
			old.past(inHand[0].Job) // SQL is read later than Redis
			old.states(done)
			path := old.backup()
			old.run(300) // after it

			r := other.bring(orders{path: path})
			left := 603 - 5
			if r.Ended != 1 || r.Unknown != left-1 {
				t.Errorf("%d ended as SQL knew and %d unknown, want 1 and %d", r.Ended, r.Unknown, left-1)
			}
			all := other.states(id)
			for state, n := range other.states(done) {
				all[state] += n
			}
			want := map[string]int{"succeeded": 5, "failed": 1, "unknown": left - 1}
			if !maps.Equal(all, want) {
				t.Errorf("the jobs are %v, want %v", all, want)
			}
			redistest.Check(t, other.redis.Config().URL, zone)
			if r := other.step(5); len(r.Jobs) != 0 {
				t.Errorf("%d jobs are handed out (%s)", len(r.Jobs), r.Status)
			}
			other.wantHalt("the disk is gone")
			if d, err := other.q.Debts(t.Context(), []string{zone}); err != nil || len(d) != 1 || d[0].Owed == "" {
				t.Errorf("history need not be asked: %+v, %v", d, err)
			}
			// After the halt was lifted, too.
			if _, err := other.q.Lift(t.Context(), "go"); err != nil {
				t.Fatal(err)
			}
			if _, err := other.q.Thaw(t.Context(), zone, "go"); err != nil {
				t.Fatal(err)
			}
			if r := other.step(5); len(r.Jobs) != 0 {
				t.Errorf("after the halt %d jobs are handed out (%s)", len(r.Jobs), r.Status)
			}
			fresh := other.submit("c", 2, jobs.Spec{})
			other.run(2) // new work runs
			other.want(fresh, map[string]int{"succeeded": 2})
		})
	}
}

func (h *house) wantHalt(words string) {
	h.t.Helper()
	note := h.redis.Do(h.t, "HGET", "muster:{default}:zone", "halted")
	if text, _ := note.(string); !strings.Contains(text, words) {
		h.t.Errorf("the zone is halted because of %q, want %q", text, words)
	}
	if state := h.redis.Do(h.t, "HGET", "muster:{hub}:halt", "state"); state != "on" {
		h.t.Errorf("the halt of the hub is %v", state)
	}
}

// A backup is a copy of one moment of each zone, however much is under way: each job is in one
// place, and the counters are right.
func TestABackupInTheMidstOfWorkIsConsistent(t *testing.T) {
	t.Parallel()
	old, other := newHouse(t, sqltest.SQLite(t), 1), newHouse(t, sqltest.SQLite(t), 1)
	old.submit("a", 3000, jobs.Spec{})
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for n := 0; ctx.Err() == nil; n++ {
			old.submit(fmt.Sprintf("n%d-", n), 10, jobs.Spec{})
			old.exchange(15)
		}
	})
	path := old.backup()
	stop()
	work.Wait()
	b := other.restoring(orders{path: path})
	if err := b.ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.proceed = true // the zone as it was
	if err := b.restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	redistest.Check(t, other.redis.Config().URL, zone)
	tasks, err := other.q.Tasks(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, task := range tasks {
		n += task.Total
	}
	if n < 3000 {
		t.Errorf("the tasks have %d jobs, want 3000 or more", n)
	}
}

// A restore refuses what it must not touch, and changes nothing.
func TestARestoreRefuses(t *testing.T) {
	t.Parallel()
	old, other := newHouse(t, sqltest.SQLite(t), 1), newHouse(t, sqltest.SQLite(t), 1)
	old.submit("a", 3, jobs.Spec{})
	old.past("0123456789:x")
	path := old.backup()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	refused := func(b *restoring, words string) {
		t.Helper()
		if err := b.ready(t.Context()); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q", err, words)
		}
	}
	change := func(name string, f func(b []byte) []byte) string {
		t.Helper()
		to := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(to, f(slices.Clone(whole)), 0o600); err != nil {
			t.Fatal(err)
		}
		return to
	}
	cut := change("cut", func(b []byte) []byte { return b[:len(b)-20] })
	flip := change("flip", func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
	more := change("more", func(b []byte) []byte { return append(b, b...) })
	for _, path := range []string{cut, flip, more} {
		refused(other.restoring(orders{path: path}), "changed or cut")
	}
	foreign := newHouse(t, sqltest.SQLite(t), 2)
	refused(foreign.restoring(orders{path: path}), "a key that this server does not have")
	b := other.restoring(orders{path: path})
	b.yes = "otherhouse"
	refused(b, "--yes-restore testhouse")
	refused(other.restoring(orders{path: path, keepSQL: true}), "is empty")
	if n := other.redis.Do(t, "DBSIZE"); n != int64(0) {
		t.Errorf("%v keys are there after refusals", n)
	}

	other.redis.Do(t, "SET", "muster:{hub}:leader:history", "1 server1", "PX", "60000")
	refused(other.restoring(orders{path: path}), "server server1 has duties")
	other.redis.Do(t, "DEL", "muster:{hub}:leader:history")
	other.redis.Do(t, "SET", "muster:{hub}:node:n1", "{}", "PX", "60000")
	refused(other.restoring(orders{path: path, replace: true}), "node n1 beats")
	other.redis.Do(t, "DEL", "muster:{hub}:node:n1")
	other.redis.Do(t, "SADD", "muster:{hub}:zones", "default")
	other.past("0123456789:y")
	refused(other.restoring(orders{path: path}), "--replace deletes it")
	refused(other.restoring(orders{path: path}), "--keep-sql leaves it")
	other.bring(orders{path: path, replace: true})
}

// A copy that only knows how to encrypt makes no backup that is believed.
func TestWhoHasNoKeyOfServersMakesNoBackup(t *testing.T) {
	t.Parallel()
	h := newHouse(t, sqltest.SQLite(t), 1)
	path := filepath.Join(t.TempDir(), "forged")
	err := backupfile.Create(path, func(w io.Writer) error {
		out, err := backupfile.NewWriter(w, backupfile.Recipients{identity().Recipient()},
			func(string) (string, error) { return "m1.00000000.AAAA", nil })
		if err != nil {
			return err
		}
		k := &packer{to: out}
		if err := k.json(backupfile.Head, head{Form: formNow, Installation: "testhouse"}); err != nil {
			return err
		}
		return out.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	err = h.restoring(orders{path: path}).ready(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is not believed") {
		t.Errorf("got %v", err)
	}
}

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/redistest"
)

// amnesia is a drill with a Redis that forgets. The first task is on seven of eight hosts; the
// last host is frozen by hand.
type amnesia struct {
	*drill
	f      *fakefleet.Fleet
	task   jobs.TaskID
	first  []string // hosts whose jobs have ended
	inHand []string // hosts whose jobs run
}

// redisDrill starts a house with a task, of which four jobs are in hand. The freezes in Redis last
// ten seconds and more, so only make drill plays these pages.
func redisDrill(t *testing.T, page string, change func(*house)) *amnesia {
	t.Helper()
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 8})
	h := newCellar(t, inventory)
	h.redis.Do(t, "CONFIG", "SET", "appendfsync", "always")
	with := map[string]any{"master": map[string]any{"children": 2, "slots": 2}}
	h.configure(with)
	if change != nil {
		change(h)
	}
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	t.Cleanup(func() { letGo(t, f) })
	r := &amnesia{f: f, task: h.submit("fw000[1-7]", marked("first"))}
	r.first = h.inHand(4)[:2]
	r.drill = drillOf(h, page, "0wcy7y2fb2", string(r.task), "/var/lib/redis", h.redis.Dir)
	return r
}

// goOn ends two jobs, and waits until history knows that, and two more have begun.
func (r *amnesia) goOn() {
	r.t.Helper()
	letGo(r.t, r.f, r.first...)
	r.awaitPast(r.task, len(r.first))
	r.inHand = r.house.inHand(4, r.first...)
}

// freeze orders by hand that nothing runs on the last host, and waits until history keeps that.
func (r *amnesia) freeze() {
	r.t.Helper()
	if _, code := r.muster("windows", "freeze", "outage", "--host", "fw0008", "--reason", "INC-1"); code != 0 {
		r.t.Fatalf("freeze: exit %d", code)
	}
	var kept struct{ Parts []struct{ Kept string } }
	for late, tick := r.late(), time.Tick(commandEvery); ; {
		r.query(&kept, "restore", "--dry-run")
		if len(kept.Parts) > 0 && strings.Contains(kept.Parts[0].Kept, "1 freezes") {
			return
		}
		select {
		case <-late:
			r.t.Fatalf("history keeps %+v", kept)
		case <-tick:
		}
	}
}

// back puts an older copy of the files of Redis in their place, and starts it.
func (r *amnesia) back(older string) {
	r.t.Helper()
	files := filepath.Join(r.redis.Dir, "appendonlydir")
	r.redis.Kill()
	if err := os.RemoveAll(files); err != nil {
		r.t.Fatal(err)
	}
	if older != "" {
		if err := os.CopyFS(files, os.DirFS(older)); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := r.redis.Start(); err != nil {
		r.t.Fatal(err)
	}
}

// recalled fails unless history was asked before the zone started, and the commands found the task.
func (r *amnesia) recalled(said string) {
	r.t.Helper()
	r.wants(said, "0wcy7y2fb2", r.inHand[0])
	if r.events()["recalled"] == 0 {
		r.t.Errorf("%s: history was not asked", r.page)
	}
}

// works orders something on hosts: it runs once on each of them.
func (r *amnesia) works(hosts ...string) {
	r.t.Helper()
	id := r.submit(strings.Join(hosts, ","), ": afterwards")
	wantOutcomes(r.t, r.wait(id), map[jobs.Outcome]int{jobs.Succeeded: len(hosts)})
	if ran := r.counted(r.f, id, "afterwards", hosts); ran != len(hosts) {
		r.t.Errorf("%s: the task of afterwards ran on %d hosts, want %d", r.page, ran, len(hosts))
	}
}

// unseen fails if a host has seen a command of a task that Redis has forgotten.
func (r *amnesia) unseen(command string) {
	r.t.Helper()
	for _, e := range r.f.Log() {
		if strings.Contains(e.Command, command) {
			r.t.Errorf("%s: %s has seen %q of a task that is forgotten", r.page, e.Host, e.Command)
		}
	}
}

// stillFrozen fails unless nothing runs on the last host, which a person has frozen.
func (r *amnesia) stillFrozen() {
	r.t.Helper()
	id := r.submit("fw0008", ": frozen")
	r.awaitJob(jobs.NewID(id, "fw0008"), jobs.Deferred)
	for _, e := range r.f.Log() {
		if e.Host == "fw0008" {
			r.t.Errorf("%s: %s ran on a host that is frozen", r.page, e.Command)
		}
	}
}

// seven are the hosts of the first task.
var seven = []string{"fw0001", "fw0002", "fw0003", "fw0004", "fw0005", "fw0006", "fw0007"}

// Redis is empty. Jobs in hand end on their hosts, nothing runs twice, the freeze of a person
// comes back, and the house works again.
func TestDrillOfALostRedis(t *testing.T) {
	if !*wholeDrill {
		return // make drill requests it
	}
	for name, lose := range map[string]func(*amnesia){
		"flushed":       func(r *amnesia) { r.redis.Do(r.t, "FLUSHALL") },
		"started empty": func(r *amnesia) { r.back("") },
	} {
		t.Run(name, func(t *testing.T) {
			r := redisDrill(t, "Redis is lost", nil)
			r.freeze()
			r.goOn()
			r.words = strings.NewReplacer("0wcy7y2fb2", string(r.task), "fw001", r.inHand[0])
			lose(r)
			r.wants(r.play(), "nothing starts", "came back")
			r.wants(r.play(), "forgotten by Redis", r.first[0], r.inHand[0])
			letGo(t, r.f)
			r.awaitNode(func(n jobs.Node) bool { return jobsInHand(n) == 0 })
			r.play()
			if ran := r.counted(r.f, r.task, "first", seven); ran != 6 {
				t.Errorf("the first task ran on %d hosts, want 6", ran)
			}
			rest := slices.DeleteFunc(slices.Clone(seven), func(host string) bool {
				return slices.Contains(r.inHand[1:], host)
			})
			r.works(rest...)
			r.stillFrozen()
		})
	}
}

// Redis has the files of yesterday: nothing that history knows runs again, and tasks that were ordered
// since are not there.
func TestDrillOfARedisOfYesterday(t *testing.T) {
	if !*wholeDrill {
		return // make drill requests it
	}
	r := redisDrill(t, "Redis was restored from yesterday", nil)
	older := filepath.Join(t.TempDir(), "older")
	if err := os.CopyFS(older, os.DirFS(filepath.Join(r.redis.Dir, "appendonlydir"))); err != nil {
		t.Fatal(err)
	}
	r.freeze()
	r.goOn()
	r.submit("fw000[1-7]", ": later")
	r.back(older)
	r.wants(r.play(), "came back")
	letGo(t, r.f)
	r.recalled(r.play())
	wantOutcomes(t, r.wait(r.task), map[jobs.Outcome]int{jobs.Succeeded: 7})
	if ran := r.counted(r.f, r.task, "first", seven); ran != 7 {
		t.Errorf("the first task ran on %d hosts, want 7", ran)
	}
	r.unseen(": later")
	r.works(seven...)
	r.stillFrozen()
}

// The append-only file ends in the middle of a command, long before its end: Redis does not start
// before somebody has repaired it, and nothing runs twice.
func TestDrillOfACutFileOfRedis(t *testing.T) {
	if !*wholeDrill {
		return // make drill requests it
	}
	r := redisDrill(t, "The file of Redis is cut", nil)
	file := filepath.Join(r.redis.Dir, "appendonlydir", "appendonly.aof.1.incr.aof")
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	r.goOn()
	r.redis.Kill()
	if err := os.Truncate(file, before.Size()+9); err != nil {
		t.Fatal(err)
	}
	// As etc/redis.conf has it: a file with a cut tail is not loaded in silence.
	said, code := r.shell("redis-server --port 0 --unixsocket socket --appendonly yes --aof-load-truncated no --dir " +
		r.redis.Dir)
	if code == 0 || !strings.Contains(said, "Unexpected end of file") {
		t.Errorf("Redis with a cut file: exit %d, %s", code, said)
	}
	r.wants(r.play(), "redis cannot be used", "AOF appendonly.aof.1.incr.aof is not valid", "Successfully truncated AOF")
	if err := r.redis.Start(); err != nil {
		t.Fatal(err)
	}
	r.recalled(r.play())
	letGo(t, r.f)
	wantOutcomes(t, r.wait(r.task), map[jobs.Outcome]int{jobs.Succeeded: 7})
	if ran := r.counted(r.f, r.task, "first", seven); ran != 7 {
		t.Errorf("the first task ran on %d hosts, want 7", ran)
	}
	r.works(seven...)
}

// A replica takes over that lacks the last writes: nothing that history knows runs again.
func TestDrillOfAFailoverThatForgot(t *testing.T) {
	if !*wholeDrill {
		return // make drill requests it
	}
	var s *redistest.Sentinels
	var idle *redistest.Server // of the house, which the checks after the test want
	r := redisDrill(t, "A failover forgot the last writes", func(h *house) {
		s = redistest.StartSentinels(t, 1, redistest.UserArgs(t, "../../etc/users.acl", nil)...)
		idle, h.redis = h.redis, s.Servers[0]
		cfg := s.Config().Sentinel
		h.configure(map[string]any{"master": map[string]any{"children": 2, "slots": 2},
			"redis": map[string]any{"url": "",
				"sentinel": map[string]any{"master": cfg.Master, "addresses": cfg.Addresses}}})
	})
	redistest.Sever(t, s.Servers[1])
	r.goOn()
	r.submit("fw000[1-7]", ": later")
	r.redis.Kill()
	redistest.AwaitMaster(t, s.Servers[1])
	r.redis = s.Servers[1]
	r.play()
	r.recalled(r.play())
	letGo(t, r.f)
	wantOutcomes(t, r.wait(r.task), map[jobs.Outcome]int{jobs.Succeeded: 7})
	if ran := r.counted(r.f, r.task, "first", seven); ran != 7 {
		t.Errorf("the first task ran on %d hosts, want 7", ran)
	}
	r.unseen(": later")
	r.works(seven...)
	redistest.Check(t, r.redis.Config().URL, "default")
	redistest.CheckRefusals(t, r.redis)
	r.redis = idle
}

package queue_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/quarantine"
	"muster/jobs/queue"
	"muster/testkit/redistest"
	"muster/testkit/zonetest"
)

func (m *walker) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"submit": m.submit, "take": m.take, "take more": m.take, "results": m.results,
		"more results": m.results, "repeat": m.repeat, "checkpoint": m.checkpoint, "die": m.die,
		"connect": m.connect, "restart": m.restart, "cancel": m.cancel, "pause": m.pause,
		"turn": m.turn, "pass": m.pass,
		"pass on": m.pass, "sweep": m.sweep, "put again": m.putAgain, "submit more": m.submit,
		"remember": m.remember, "roll": m.roll, "appoint": m.appoint, "reorder": m.reorder, "forget": m.forget,
		"recall": m.recall, "ask": m.ask, "answer": m.answer,
	}
}

// twins runs a test on the embedded Redis and on a real server.
func twins(t *testing.T, test func(t *testing.T, w *twin)) {
	t.Run("miniredis", func(t *testing.T) {
		t.Parallel()
		m, _ := redistest.StartMini(t)
		test(t, newTwin(t, m.Addr()))
	})
	t.Run("redis-server", func(t *testing.T) {
		t.Parallel()
		test(t, newTwin(t, redistest.StartServer(t, "--appendonly", "no").Addr))
	})
}

// Every script changes a zone in Redis as the model changes its own, whatever happened before, and
// gives the same answer.
func TestTheScriptsAreTheModel(t *testing.T) {
	t.Parallel()
	twins(t, walksAsTheModel)
}

// The short ways of step change nothing but its speed: without them the answers are the same.
func TestTheScriptsAreTheModelWithoutShortWays(t *testing.T) {
	t.Parallel()
	addr := redistest.StartServer(t, "--appendonly", "no").Addr
	walksAsTheModel(t, newTwinOf(t, addr, queue.SlowScriptBehind))
}

func walksAsTheModel(t *testing.T, w *twin) {
	rapid.Check(t, func(t *rapid.T) {
		m := newWalker(t, w)
		m.begin(t)
		actions := m.actions()
		actions[""] = func(t *rapid.T) {
			for _, mistake := range zonetest.Mistakes(m.zone) {
				t.Fatal(mistake, "\n", strings.Join(m.calls, "\n"))
			}
		}
		t.Repeat(actions)
	})
}

// The same for tasks that begin the next host of a group only after the one before has succeeded:
// such jobs are rare in the other walk.
func TestProvenGroupsAreThoseOfTheModel(t *testing.T) {
	t.Parallel()
	skipped := 0
	w := newTwin(t, redistest.StartServer(t, "--appendonly", "no").Addr)
	walks := func(t *rapid.T) {
		m := newWalker(t, w)
		m.proves = true
		m.begin(t)
		m.submit(t)
		t.Repeat(map[string]func(*rapid.T){"submit": m.submit, "take": m.take, "take more": m.take,
			"end": m.endAll, "end more": m.endAll, "results": m.results, "die": m.die, "sweep": m.sweep})
		for _, j := range m.zone.Jobs {
			if strings.Contains(j.End.Error, "of its group ended") {
				skipped++
			}
		}
	}
	// A short run has few walks, and by chance no job may have been skipped.
	for rounds := 0; skipped == 0 && rounds < 20; rounds++ {
		rapid.Check(t, walks)
	}
	if skipped == 0 {
		t.Error("no job was skipped: this test sees nothing")
	}
	t.Log(skipped, "jobs were skipped")
}

// endAll ends all jobs of a child.
func (m *walker) endAll(t *rapid.T) {
	c := m.child(t)
	s := m.request(t, c, 2)
	for _, id := range slices.Sorted(maps.Keys(c.hand)) {
		outcome := rapid.SampledFrom(jobs.Outcomes()).Draw(t, "outcome")
		s.Results = append(s.Results, jobs.Result{Job: id, Token: c.hand[id].Token, Kind: jobs.KindEnd,
			Outcome: outcome})
		delete(c.hand, id)
	}
	m.send(t, c, s)
}

// After a script that breaks off between any two of its writes, later calls repair the zone:
// nothing is lost, nothing is counted wrong, and nothing runs twice at once. Only ended jobs may
// still hold a semaphore: fsck corrects that.
func TestAScriptThatBreaksOffIsMended(t *testing.T) {
	t.Parallel()
	w := newTwin(t, redistest.StartServer(t, "--appendonly", "no").Addr)
	rapid.Check(t, func(t *rapid.T) {
		m := newWalker(t, w)
		m.begin(t)
		actions := m.actions()
		actions[""] = func(t *rapid.T) {
			m.note()
			for _, mistake := range zonetest.Broken(m.zone) {
				t.Fatal(mistake, "\n", strings.Join(m.calls, "\n"))
			}
			m.stop = max(rapid.IntRange(-40, 20).Draw(t, "break off"), 0)
		}
		t.Repeat(actions)
		m.stop = 0
		m.mend(t)
	})
}

// mend makes calls until nothing is left to do.
func (m *walker) mend(t *rapid.T) {
	m.enter(t)
	for verb, number := range map[string]int64{"lift": 1000, "resume-zone": -1, "thaw": 1000} {
		m.control(t, model.Turn{Verb: verb, Note: "x", Number: number})
	}
	for _, customer := range []string{"acme", "beta"} {
		m.control(t, model.Turn{Verb: "resume-customer", Object: customer, Note: "x", Number: -1})
	}
	for _, limit := range []string{"site/a", "site/b", "lab"} {
		m.control(t, model.Turn{Verb: "limit", Object: limit, Number: 1})
	}
	for _, p := range m.tasks {
		m.twin.roll(t, model.Roll{Task: p.Task, Verb: "go", Number: 9})
		for _, verb := range []string{"commit", "resume", "release"} {
			m.move(t, model.Move{Task: p.Task, Verb: verb, Limit: 500, Note: "x", Order: -1})
		}
	}
	left := 0
	for range 200 {
		before := m.now
		m.now = m.now.Add(20 * time.Second)
		for _, set := range []*model.Set[jobs.ID]{m.zone.Queue, m.zone.Again} {
			if _, at, ok := set.First(); ok && at > m.now && left == 0 {
				m.now = at
			}
		}
		left, m.real = 0, m.real.Add(m.now.Sub(before))
		m.note()
		m.clean(t)
		m.clear(t)
		waves := m.nextWaves(t)
		for _, c := range m.children {
			m.n++
			s := model.Step{Sent: m.now + jobs.Micros(m.n), Step: jobs.Step{Node: c.node, Slot: c.slot,
				Request: fmt.Sprint("r", m.n), Want: 2}}
			for _, id := range slices.Sorted(maps.Keys(c.hand)) {
				s.Results = append(s.Results, jobs.Result{Job: id, Token: c.hand[id].Token,
					Kind: jobs.KindEnd, Outcome: jobs.Succeeded})
			}
			clear(c.hand)
			m.send(t, c, s)
			left += len(c.hand)
		}
		if waves+left+m.zone.Queue.Len()+m.zone.Again.Len() == 0 {
			break
		}
	}
	m.note()
	for _, p := range m.tasks {
		if task := m.zone.Tasks[p.Task]; task != nil && task.Committed != 0 {
			m.allEnded(t, p.Task, task)
		}
	}
}

// nextWaves acts as the duty of a server and as a person for tasks in waves, and counts the jobs of
// waves that are not open.
func (m *walker) nextWaves(t *rapid.T) (left int) {
	for _, p := range m.tasks {
		task := m.zone.Tasks[p.Task]
		if task == nil || task.Committed == 0 || task.Wave == 0 || task.Done == task.Head.Total {
			continue
		}
		left += m.zone.Held[p.Task].Len()
		if task.Stopped.Note != "" {
			m.twin.roll(t, model.Roll{Task: p.Task, Verb: "go", Number: 9})
			m.move(t, model.Move{Task: p.Task, Verb: "release", Limit: 500, Note: "x"})
		}
		for chunk := 0; task.Cancel != "" && chunk < task.Head.Chunks; chunk++ {
			m.end(t, model.Ending{Task: p.Task, Note: task.Cancel, Chunk: chunk})
		}
		m.twin.roll(t, model.Roll{Task: p.Task, Verb: "look"})
		if m.twin.roll(t, model.Roll{Task: p.Task, Verb: "open", Number: 2}).Status == "ok" {
			m.move(t, model.Move{Task: p.Task, Verb: "release", Limit: 500, Note: "x"})
		}
	}
	return left
}

func (m *walker) note() {
	for id, j := range m.zone.Jobs {
		if j.State == jobs.Ended {
			m.over[id] = true
		}
	}
}

// clean frees what an ended job holds, which is left to fsck.
func (m *walker) clean(t *rapid.T) {
	s := m.zone.Semaphores
	for name, holders := range s.Holders {
		for id := range holders {
			if j := m.zone.Jobs[jobs.ID(id)]; (j == nil || j.State == jobs.Ended) && id != "frozen" {
				m.rdb.HDel(tctx(t), "muster:{default}:sem:"+name, id)
				delete(holders, id)
			}
		}
		if len(holders) == 0 {
			m.rdb.SRem(tctx(t), "muster:{default}:sems", name)
			delete(s.Holders, name)
			delete(s.Index, name)
		}
	}
}

// clear acts as the person who looks at frozen groups and at hosts in quarantine.
func (m *walker) clear(t *rapid.T) {
	for _, host := range slices.Sorted(maps.Keys(m.zone.Semaphores.Aside)) {
		m.control(t, model.Turn{Verb: quarantine.Release, Object: host, Note: "x"})
	}
	for _, name := range slices.Sorted(maps.Keys(m.zone.Semaphores.Holders)) {
		if _, frozen := m.zone.Semaphores.Holders[name]["frozen"]; frozen {
			group := strings.TrimPrefix(name, "group/")
			m.control(t, model.Turn{Verb: "clear", Object: group, Note: "x"})
		}
	}
}

func (m *walker) allEnded(t *rapid.T, id jobs.TaskID, task *model.Task) {
	for _, hosts := range task.Chunks {
		for _, host := range hosts {
			if task.Ended == 0 {
				t.Fatalf("task %s is never closed\n%s", id, strings.Join(m.calls, "\n"))
			}
			if !m.over[jobs.NewID(id, host)] {
				t.Fatalf("the job of task %s on %s never ends: %v\n%s", id, host,
					zonetest.Mistakes(m.zone), strings.Join(m.calls, "\n"))
			}
		}
	}
}

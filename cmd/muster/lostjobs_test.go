package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// againRunbook has a step that may run twice. Its lock lasts for more than a minute.
const againRunbook = `
name: again
repeatable: true
retry: {submit: 5, delay: 1s}
timeout: 30s
steps: [{name: nap, run: "sleep 2"}]
`

// losing is a house with one child at a time, and a fleet that reports its commands.
type losing struct {
	*house
	fleet         *fakefleet.Fleet
	master        *process
	starts, ended chan string // hosts
}

func newLosing(t *testing.T) *losing {
	t.Helper()
	return newLosingOf(t, againRunbook)
}

func newLosingOf(t *testing.T, runbook string) *losing {
	t.Helper()
	l := &losing{starts: make(chan string, 100), ended: make(chan string, 100)}
	f, inventory := pretend(t, fakefleet.Config{Hosts: 10, Watch: func(e fakefleet.Entry) {
		switch {
		case !e.Running():
			l.ended <- e.Host
		case !e.Orphaned:
			l.starts <- e.Host
		}
	}})
	l.fleet, l.house = f, newCellar(t, inventory)
	l.write("again.yaml", runbook)
	l.configure(map[string]any{"master": map[string]any{"children": 1},
		"runbooks": []string{l.file("again.yaml")}})
	l.server = l.start("server", "--config", l.file("muster.yaml"))
	l.server.await("server listens")
	l.master = l.house.master()
	return l
}

// again submits the runbook for a host.
func (l *losing) again(host string) jobs.ID {
	l.t.Helper()
	var task jobs.TaskInfo
	if code := l.query(&task, "run", "again", "--on", host, "--detach"); code != cli.ExitOK {
		l.t.Fatalf("muster run: exit %d", code)
	}
	return jobs.NewID(task.Task, host)
}

// await waits for the next host in a channel.
func (l *losing) await(hosts <-chan string) {
	l.t.Helper()
	select {
	case <-hosts:
	case <-time.After(30 * time.Second):
		l.t.Fatalf("nothing happens on the hosts; the master says:\n%s", l.master.log)
	}
}

// killChild kills the child as soon as a command runs.
func (l *losing) killChild() {
	l.t.Helper()
	l.await(l.starts)
	pids := children(l.master.cmd.Process.Pid)
	if len(pids) != 1 {
		l.t.Fatalf("children %v, want one", pids)
	}
	syscall.Kill(pids[0], syscall.SIGKILL)
}

// passLock lets the lock of a lost job end, after the end of the command that was left behind.
func (l *losing) passLock(id jobs.ID) {
	l.t.Helper()
	j := l.awaitJob(id, jobs.Retry)
	if hold := j.Next.Sub(j.Started.Time); hold < time.Minute {
		l.t.Errorf("it shall run again %s after its start, when its lock has not ended", hold)
	}
	l.await(l.ended)
	l.redis.Do(l.t, "HDEL", "muster:{default}:locks", id.Host())
	l.redis.Do(l.t, "ZADD", "muster:{default}:again", "XX", 1, string(id))
	l.redis.Do(l.t, "PUBLISH", "muster:{default}:wake", "")
}

func TestALostJobThatMayRunTwiceRunsAgain(t *testing.T) {
	t.Parallel()
	l := newLosing(t)
	id := l.again("fw0001")
	l.killChild()
	l.passLock(id)
	wantOutcomes(t, l.wait(id.Task()), map[jobs.Outcome]int{jobs.Succeeded: 1})
	if n := len(l.fleet.Log()); n != 2 {
		t.Errorf("the host saw %d commands, want 2", n)
	}
	if j := l.jobs(id.Task())[0]; j.Attempt < 2 || j.Tries != 1 {
		t.Errorf("%d attempts, %d failed; want a second one and one failure", j.Attempt, j.Tries)
	}

	// A job that waits for the end of its lock can be cancelled. Its end does not claim that it did
	// not run, and its host stays locked.
	l.await(l.starts) // of the second attempt
	id = l.again("fw0002")
	l.killChild()
	l.awaitJob(id, jobs.Retry)
	if out, code := l.muster("cancel", string(id.Task())); code != cli.ExitOK {
		t.Errorf("cancel: exit %d: %s", code, out)
	}
	wantOutcomes(t, l.wait(id.Task()), map[jobs.Outcome]int{jobs.Unknown: 1})
	if j := l.jobs(id.Task())[0]; !strings.Contains(j.Error, "cancelled when a step may have run") {
		t.Errorf("its error is %q", j.Error)
	}
	next := jobs.NewID(l.submit("fw0002", "true"), "fw0002")
	l.awaitJob(next, jobs.Blocked)
	l.muster("cancel", string(next.Task()))
	wantOutcomes(t, l.wait(next.Task()), map[jobs.Outcome]int{jobs.Cancelled: 1})
	if n := len(l.fleet.Log()); n != 3 {
		t.Errorf("the hosts saw %d commands, want 3", n)
	}
	wantNoOverlap(t, l.fleet)
}

func TestAJobThatTakesThreeWorkersWithItFails(t *testing.T) {
	t.Parallel()
	l := newLosing(t)
	id := l.again("fw0001")
	for range 2 {
		l.killChild()
		l.passLock(id)
	}
	l.killChild()
	wantOutcomes(t, l.wait(id.Task()), map[jobs.Outcome]int{jobs.Failed: 1})
	j := l.jobs(id.Task())[0]
	if j.Class != jobs.ClassOperator || !strings.Contains(j.Error, "took 3 workers with it") ||
		!strings.Contains(j.Error, "killed") {
		t.Errorf("class %s, error %q", j.Class, j.Error)
	}
	if n := len(l.fleet.Log()); n != 3 {
		t.Errorf("the host saw %d commands, want 3", n)
	}
	wantOutcomes(t, l.wait(l.submit("fw0002", "true")), map[jobs.Outcome]int{jobs.Succeeded: 1})
	wantNoOverlap(t, l.fleet)
}

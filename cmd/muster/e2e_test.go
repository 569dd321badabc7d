package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/sshtest"
)

func TestRunOnRealOpenSSH(t *testing.T) {
	t.Parallel()
	var inventory strings.Builder
	inventory.WriteString("hosts:\n")
	for i, address := range []string{"127.0.0.2", "127.0.0.3"} {
		s := sshtest.StartSSHD(t, sshtest.Options{Address: address})
		key := s.HostKey
		for n, name := range []string{fmt.Sprint("fw", i+1), fmt.Sprint("swapped", i+1)} {
			if n == 1 {
				_, key = sshtest.NewKey(t)
			}
			fmt.Fprintf(&inventory, "  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q}\n",
				name, s.Address, s.Port, s.User, s.Key, key)
		}
	}
	h := newHouse(t, inventory.String())
	h.master()

	var done jobs.TaskInfo
	if code := h.query(&done, "run", "exec", "--on", "fw[1-2]", "--arg", "cmd=uname -a", "--wait"); code != 0 {
		t.Errorf("exit %d", code)
	}
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: 2})
	out, code := h.muster("logs", string(jobs.NewID(done.Task, "fw1")))
	if code != 0 || !strings.HasPrefix(out, "Linux ") {
		t.Errorf("logs: exit %d: %q", code, out)
	}

	if code := h.query(&done, "run", "exec", "--on", "swapped1", "--arg", "cmd=true", "--wait"); code != 1 {
		t.Errorf("with a wrong host key: exit %d", code)
	}
	j := h.jobs(done.Task)[0]
	if j.Outcome != jobs.Failed || j.Class != jobs.ClassOperator || !strings.Contains(j.Error, "host key") {
		t.Errorf("with a wrong host key: %+v", j)
	}

	// Text that an operator means as data stays data, whatever it contains.
	for _, nasty := range []string{"it's \"$(id)\" `id` $HOME \\n", "-rf --", "a\nb", "äöü ☃"} {
		h.query(&done, "run", "exec", "--on", "fw1", "--arg", "cmd=printf %s "+quote(nasty), "--wait")
		if out, _ := h.muster("logs", string(jobs.NewID(done.Task, "fw1"))); out != nasty {
			t.Errorf("%q came back as %q", nasty, out)
		}
	}
}

// quote quotes a text as an operator's own shell would need it.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func TestEveryFaultOfAHostIsToldTruly(t *testing.T) {
	t.Parallel()
	faults := []fakefleet.Personality{fakefleet.Normal, fakefleet.Refuse, fakefleet.WrongKey,
		fakefleet.UnknownKeyType, fakefleet.Cut, fakefleet.NoExitStatus, fakefleet.Fail,
		fakefleet.NoNewline, fakefleet.Flood, fakefleet.Throttle}
	f, inventory := pretend(t, fakefleet.Config{Hosts: len(faults), FloodBytes: 20 << 20,
		Personality: func(i int) fakefleet.Personality { return faults[i] }})
	h := newHouse(t, inventory)
	h.master()
	done := h.wait(h.submit("all", "echo hi"))
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: 4, jobs.Unreachable: 1,
		jobs.Failed: 3, jobs.Unknown: 2})
	want := map[fakefleet.Personality]jobs.Outcome{fakefleet.Refuse: jobs.Unreachable,
		fakefleet.WrongKey: jobs.Failed, fakefleet.UnknownKeyType: jobs.Failed,
		fakefleet.Cut: jobs.Unknown, fakefleet.NoExitStatus: jobs.Unknown, fakefleet.Fail: jobs.Failed}
	for i, j := range h.jobs(done.Task) {
		o, bad := want[faults[i]]
		if !bad {
			o = jobs.Succeeded
		}
		if j.Outcome != o || bad && j.Error == "" {
			t.Errorf("%s host: %s, %q", faults[i], j.Outcome, j.Error)
		}
	}
	wantNoOverlap(t, f)
}

func TestKilledChildrenLoseNothing(t *testing.T) {
	t.Parallel()
	hosts, cmd, least := 1000, "sleep 0.3", 50
	if testing.Short() {
		hosts, least = 150, 5
	}
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.config(map[string]any{"children": 12})
	m := h.master()
	id := h.submit("all", cmd)

	stop := make(chan struct{})
	killed := make(chan int)
	go func() {
		n := 0
		for tick := time.Tick(200 * time.Millisecond); ; {
			select {
			case <-stop:
				killed <- n
				return
			case <-tick:
				if pids := children(m.cmd.Process.Pid); len(pids) > 0 {
					syscall.Kill(pids[rand.IntN(len(pids))], syscall.SIGKILL)
					n++
				}
			}
		}
	}()
	done := h.wait(id)
	close(stop)
	kills, hits := <-killed, h.events()["lost"]
	t.Logf("%d kills, %d hit a running job; outcomes %v in %.1f s", kills, hits, done.Outcomes,
		done.Seconds)
	if done.Total != hosts || done.Outcomes.Sum() != hosts {
		t.Errorf("%d of %d jobs have an outcome", done.Outcomes.Sum(), done.Total)
	}
	if hits < least || done.Outcomes[jobs.Unknown] > hits {
		t.Errorf("%d kills hit a running job, want at least %d; %d are unknown, want at most as many",
			hits, least, done.Outcomes[jobs.Unknown])
	}
	if done.Outcomes[jobs.Succeeded]+done.Outcomes[jobs.Unknown] != hosts {
		t.Errorf("outcomes are %v, want succeeded and unknown only", done.Outcomes)
	}
	wantNoOverlap(t, f)
}

func TestAKilledMasterIsReplacedAndItsChildrenCount(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 60})
	h := newHouse(t, inventory)
	// Its log goes to a file: a pipe would stay open until the orphans close it.
	log, err := os.Create(h.file("first.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	first := h.startTo(log, "master", "--config", h.file("muster.yaml"))
	id := h.submit("all", "sleep 1")
	h.awaitNode(func(n jobs.Node) bool { return len(n.Children) == 4 })
	// A child that has no job from its master yet ends with it.
	h.lookUntil("the number of hosts that were at work", func(*cli.Client) (any, bool, error) {
		n := len(f.Log())
		return n, n >= 8, nil
	})
	before := children(first.cmd.Process.Pid)
	first.kill()
	if alive := slices.DeleteFunc(slices.Clone(before), func(pid int) bool { return !isWorker(pid) }); len(alive) != 4 {
		t.Errorf("%d children outlive their master, want 4", len(alive))
	}
	second := h.master()
	// The children of the first master continue; together there are never more than four.
	most := 0
	for n := 0; n < 5; n++ {
		alive := len(children(second.cmd.Process.Pid))
		for _, pid := range before {
			if syscall.Kill(pid, 0) == nil && isWorker(pid) {
				alive++
			}
		}
		most = max(most, alive)
		if limit := h.node().Limit; alive > limit {
			t.Errorf("%d children, the limit is %d", alive, limit)
		}
	}
	done := h.wait(id)
	t.Logf("children before %v, at most %d at a time after", before, most)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Succeeded: 60})
	wantNoOverlap(t, f)
}

func isWorker(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(text), "worker")
}

// The story for which muster was made: four jobs of bob wait behind a thousand of alice. He has no
// more right to the queue than she, and his hosts are the last but ten of hers.
func TestASmallTaskDoesNotWaitForABigOne(t *testing.T) {
	t.Parallel()
	const hosts = 1000
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts})
	h := newHouse(t, inventory)
	h.configure(map[string]any{"master": map[string]any{"slots": 4},
		"overload": map[string]any{"after": "200ms"}})
	alice := h.submit("all", "true")
	var bob jobs.TaskInfo
	if code := h.query(&bob, "run", "exec", "--on", strings.Join(f.Names(fakefleet.Normal)[hosts-14:hosts-10], ","),
		"--arg", "cmd=true", "--detach"); code != 0 {
		t.Fatalf("muster run: exit %d", code)
	}
	if bob.Priority != "" && bob.Priority != jobs.PriorityNormal {
		t.Errorf("the task has priority %q", bob.Priority)
	}
	h.master()
	wantOutcomes(t, h.wait(bob.Task), map[jobs.Outcome]int{jobs.Succeeded: 4})
	h.awaitReordering()
	wantOutcomes(t, h.wait(alice), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	wantNoOverlap(t, f)

	// The test counts starts, not time: how many of alice's jobs started before each of bob's.
	before := h.jobs(alice)
	for _, j := range h.jobs(bob.Task) {
		n := 0
		for _, a := range before {
			if a.Started.Before(j.Started.Time) {
				n++
			}
		}
		if n > hosts*3/4 {
			t.Errorf("%s started behind %d of alice's %d jobs", j.ID, n, hosts)
		}
		t.Logf("%s started behind %d of alice's jobs", j.ID, n)
	}
	if n := h.events(); n["reorder"] == 0 || n["reordered"] == 0 {
		t.Errorf("events: %v", n)
	}
}

// awaitReordering waits until a reordering is over: bob's jobs are at the front after its first
// calls, and can end before it does.
func (h *house) awaitReordering() {
	h.t.Helper()
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		var zones []api.Zone
		h.query(&zones, "queue")
		if r := zones[0].Reordered; len(zones) == 1 && r.Moved > 0 && r.By != "" {
			return
		}
		select {
		case <-late:
			h.t.Fatalf("the queue was not reordered: %+v", zones)
		case <-tick:
		}
	}
}

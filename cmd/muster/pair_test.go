package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

var tries = flag.Int("tries", 30, "how often both members of a group are due at once")

// pairs is the number of redundancy groups in a test.
const pairs = 10

// newPairs is a house with two masters and so many groups of two hosts: fw0001 and fw0002 are
// pair1, and so on.
func newPairs(t *testing.T, children int) (*house, *fakefleet.Fleet) {
	t.Helper()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 2 * pairs})
	inventory = regexp.MustCompile(`customer: \w+`).ReplaceAllString(inventory, "customer: acme")
	for i := range 2 * pairs {
		inventory = inGroup(inventory, nameOf(i), groupOf(nameOf(i)))
	}
	h := newHouse(t, inventory)
	h.config(map[string]any{"children": children})
	h.master()
	h.secondMaster()
	return h, f
}

func nameOf(i int) string { return fmt.Sprintf("fw%04d", i+1) }

func groupOf(host string) string {
	var n int
	fmt.Sscanf(host, "fw%04d", &n)
	return fmt.Sprint("pair", (n+1)/2)
}

// secondMaster starts a master that acts as another node.
func (h *house) secondMaster() *process {
	h.t.Helper()
	text, err := os.ReadFile(h.file("muster.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	var config map[string]any
	if err := json.Unmarshal(text, &config); err != nil {
		h.t.Fatal(err)
	}
	config["node"] = map[string]any{"name": "node2", "dir": h.file("second")}
	if text, err = json.Marshal(config); err != nil {
		h.t.Fatal(err)
	}
	h.write("second.yaml", string(text))
	m := h.start("master", "--config", h.file("second.yaml"))
	m.await("master started")
	return m
}

// together submits a task for the first members and one for the second members of all groups, due
// at the same instant, and waits for their ends. It returns how many jobs each node took.
func (h *house) together(c *cli.Client, cmd string, disruptive bool) map[string]int {
	h.t.Helper()
	at := jobs.Time{Time: time.Now().Add(300 * time.Millisecond)}
	var ids []jobs.TaskID
	for member := range 2 {
		var hosts []string
		for i := range pairs {
			hosts = append(hosts, nameOf(2*i+member))
		}
		t, err := c.Submit(h.t.Context(), api.Submit{Runbook: "exec", On: strings.Join(hosts, ","),
			Args: map[string]string{"cmd": cmd}, At: at, Manner: api.Manner{Disruptive: disruptive}}, nil)
		if err != nil {
			h.t.Fatal(err)
		}
		ids = append(ids, t.Task)
	}
	took := map[string]int{}
	for _, id := range ids {
		if t := h.wait(id); t.Outcomes[jobs.Succeeded] != pairs {
			h.t.Fatalf("task %s: %v", id, t.Outcomes)
		}
		for _, j := range h.jobs(id) {
			node, _, _ := strings.Cut(j.Node, "/")
			took[node]++
		}
	}
	return took
}

// meetings returns, from the hosts' own log, commands inside two members of a group at the same
// time.
func meetings(log []fakefleet.Entry) []fakefleet.Overlap {
	var out []fakefleet.Overlap
	log = slices.Clone(log)
	slices.SortFunc(log, func(a, b fakefleet.Entry) int { return a.Start.Compare(b.Start) })
	last := map[string]fakefleet.Entry{} // of each group the command that ends last
	for _, e := range log {
		group := groupOf(e.Host)
		before, seen := last[group]
		if seen && before.Host != e.Host && (before.Running() || e.Start.Before(before.End)) {
			out = append(out, fakefleet.Overlap{Host: group, First: before, Second: e})
		}
		if !seen || !before.Running() && (e.Running() || e.End.After(before.End)) {
			last[group] = e
		}
	}
	return out
}

func TestBothMembersOfAGroupAreNeverDisturbedAtOnce(t *testing.T) {
	t.Parallel()
	h, f := newPairs(t, pairs)
	c, err := cli.NewClient(h.url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done, took := 0, map[string]int{}
	for ; done < *tries; done += pairs {
		for node, n := range h.together(c, "sleep 0.05", true) {
			took[node] += n
		}
	}
	if len(took) != 2 {
		t.Errorf("jobs were taken by %v: two masters were to want them at the same time", took)
	}
	log := f.Log()
	if m := meetings(log); len(m) > 0 {
		t.Errorf("%d times in %d tries both members of a group were disturbed; first: %+v", len(m), done, m[0])
	}
	if len(log) != 2*done {
		t.Errorf("the hosts saw %d commands, want %d", len(log), 2*done)
	}
	t.Logf("%d tries, %d commands, taken by %v", done, len(log), took)

	// Without a group commands do meet, so meetings can find them.
	for rounds := 0; len(meetings(f.Log()[len(log):])) == 0; rounds++ {
		if rounds == 20 {
			t.Fatal("tasks that are not disruptive never meet: this test sees nothing")
		}
		h.together(c, "sleep 0.2", false)
	}
}

func TestAGroupWhoseWorkerWasKilledStaysAloneUntilItIsCleared(t *testing.T) {
	t.Parallel()
	h, f := newPairs(t, 1)
	var task jobs.TaskInfo
	h.query(&task, "run", "exec", "--on", "fw[0001-0002]", "--arg", "cmd="+held+"; : disturbing", "--disruptive",
		"--detach")
	first := h.awaitRunning(task.Task)
	h.lookUntil("the command on "+first.Host(), func(*cli.Client) (any, bool, error) {
		n := commands(f, first.Host(), "disturbing") // a child that dies before has touched nothing
		return n, n > 0, nil
	})
	if err := syscall.Kill(h.childWith(first), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.awaitGroup("pair1", func(g jobs.Group) bool { return g.Frozen != "" && g.Job == first })

	letGo(t, f)
	// A job that only reads is allowed, even on the other host, which is still alone.
	other := jobs.NewID(task.Task, map[string]string{"fw0001": "fw0002", "fw0002": "fw0001"}[first.Host()])
	if _, code := h.muster("run", "exec", "--on", other.Host(), "--arg", "cmd=: looking"); code != 0 {
		t.Errorf("a look at %s: exit %d", other.Host(), code)
	}
	var waits jobs.JobInfo
	h.query(&waits, "job", string(other))
	if waits.State != jobs.Blocked || waits.Waits != "group/pair1" {
		t.Errorf("the other job is %s and waits for %q", waits.State, waits.Waits)
	}
	if n := commands(f, other.Host(), "disturbing"); n > 0 {
		t.Errorf("%d commands disturbed %s before anybody cleared its group", n, other.Host())
	}
	if _, code := h.muster("group", "clear", "pair1", "--reason", "looked at it"); code != 0 {
		t.Errorf("clear: exit %d", code)
	}
	done := h.wait(task.Task)
	wantOutcomes(t, done, map[jobs.Outcome]int{jobs.Unknown: 1, jobs.Succeeded: 1})
	if n := commands(f, other.Host(), "disturbing"); n != 1 {
		t.Errorf("%d commands on %s after its group was cleared, want 1", n, other.Host())
	}
	wantNoOverlap(t, f)
}

// awaitRunning waits until a job of a task is running.
func (h *house) awaitRunning(id jobs.TaskID) (running jobs.ID) {
	h.t.Helper()
	h.lookUntil("the jobs of "+string(id), func(c *cli.Client) (any, bool, error) {
		list, err := c.Jobs(h.t.Context(), id, jobs.Running, "")
		if len(list) == 0 {
			return list, false, err
		}
		running = list[0].ID
		return list, true, err
	})
	return running
}

// childWith returns the process that works on a job.
func (h *house) childWith(id jobs.ID) (pid int) {
	h.t.Helper()
	h.lookUntil("the nodes", func(c *cli.Client) (any, bool, error) {
		var l api.NodeList
		err := c.Get(h.t.Context(), "/v1/nodes", nil, &l)
		for _, n := range l.Nodes {
			for _, child := range n.Children {
				if child.Job == id {
					pid = child.PID
				}
			}
		}
		return l.Nodes, pid != 0, err
	})
	return pid
}

func (h *house) awaitGroup(name string, as func(jobs.Group) bool) {
	h.t.Helper()
	h.lookUntil("the groups", func(c *cli.Client) (any, bool, error) {
		var l api.GroupList
		err := c.Get(h.t.Context(), "/v1/groups", nil, &l)
		return l.Groups, slices.ContainsFunc(l.Groups, func(g jobs.Group) bool {
			return g.Name == name && as(g)
		}), err
	})
}

// commands counts the commands on a host that contain a word.
func commands(f *fakefleet.Fleet, host, word string) int {
	n := 0
	for _, e := range f.Log() {
		if e.Host == host && strings.Contains(e.Command, word) {
			n++
		}
	}
	return n
}

func TestAHaltStopsEverythingUntilItIsLifted(t *testing.T) {
	t.Parallel()
	f, inventory := pretend(t, fakefleet.Config{Hosts: 40})
	h := newHouse(t, inventory)
	h.master()
	id := h.submit("all", held)
	h.awaitRunning(id)
	if _, code := h.muster("halt", "--reason", "fire"); code != 0 {
		t.Fatalf("halt: exit %d", code)
	}
	// The commands in hand end, and no step follows them.
	letGo(t, f)
	h.awaitTask(id, func(t jobs.TaskInfo) bool { return t.Running == 0 })
	started := f.Stats().Commands
	if started > 4 {
		t.Errorf("%d commands at four children, of which each had one when all was halted", started)
	}
	later := h.submit("all", "true")
	h.awaitTask(later, func(t jobs.TaskInfo) bool { return t.State == jobs.TaskQueued })
	if got := f.Stats().Commands; got != started {
		t.Errorf("%d commands started in a halt", got-started)
	}
	if _, code := h.muster("resume", "--all"); code != cli.ExitUsage {
		t.Errorf("a lift without a reason: exit %d", code)
	}
	if _, code := h.muster("resume", "--all", "--reason", "it is out"); code != 0 {
		t.Errorf("lift: exit %d", code)
	}
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 40})
	wantOutcomes(t, h.wait(later), map[jobs.Outcome]int{jobs.Succeeded: 40})
	wantNoOverlap(t, f)
}

// Fifty pairs get a reboot at once, from two masters. The hosts are away for a while, and their own
// log judges: never both of a pair.
func TestBothMembersOfAGroupAreNeverAwayAtOnce(t *testing.T) {
	t.Parallel()
	const hosts = 100
	f, inventory := pretend(t, fakefleet.Config{Hosts: hosts, BootTakes: time.Second})
	inventory = regexp.MustCompile(`customer: \w+`).ReplaceAllString(inventory, "customer: acme")
	for i := range hosts {
		inventory = inGroup(inventory, nameOf(i), groupOf(nameOf(i)))
	}
	h := newCellar(t, inventory)
	h.write("quick.yaml", strings.Replace(quick(t, "reboot", 30), "      unreachable:",
		"      not_ready: {first: 1s, more: 1s, probes: 6}\n      unreachable:", 1))
	h.configure(map[string]any{"master": map[string]any{"children": pairs},
		"runbooks": []string{h.file("quick.yaml")}})
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	h.master()
	h.secondMaster()
	var task jobs.TaskInfo
	h.query(&task, "run", "reboot-quick", "--on", "all", "--wait")
	wantOutcomes(t, task, map[jobs.Outcome]int{jobs.Succeeded: hosts})

	last, together := map[string]fakefleet.Outage{}, 0
	outages := f.Outages()
	for i, o := range outages {
		group := groupOf(o.Host)
		if before, seen := last[group]; seen && (before.Host == o.Host || before.Meets(o)) {
			t.Errorf("%s was away from %s to %s, and %s from %s on", before.Host, before.Down, before.Up, o.Host, o.Down)
		}
		last[group] = o
		if i > 0 && o.Meets(outages[i-1]) {
			together++
		}
	}
	if len(outages) != hosts || together == 0 {
		t.Errorf("%d hosts were away, want %d; %d with another one", len(outages), hosts, together)
	}
}

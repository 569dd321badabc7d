package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/cli/founding"
	"muster/internal/fakefleet"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/apart"
	"muster/jobs/queue/hooks"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// The test binary is also muster, when it is started under that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "muster" {
		if err := wrongClock(); err != nil {
			panic(err)
		}
		cli.Version = strings.TrimSpace(firstVersion)
		os.Exit(run())
	}
	hooks.Quiet()
	if !raceDetector() {
		twiceAsManyAtATime()
	}
	os.Exit(m.Run())
}

// raceDetector reports whether this binary was built with -race.
func raceDetector() bool {
	b, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(b.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// twiceAsManyAtATime doubles -parallel: the tests of this package mostly wait, for hosts that boot,
// rules that take themselves back, houses that fall silent. A test of a minute takes two seconds of
// a processor. Under the race detector it takes ten times as many, and a server that has to wait
// for its processor that long says, rightly, that its tables are not usable yet.
func twiceAsManyAtATime() {
	flag.Parse()
	n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String())
	if err == nil {
		err = flag.Set("test.parallel", strconv.Itoa(2*n))
	}
	if err != nil {
		panic(err)
	}
}

// The versions of the test binary, and of the binary that replaces it in the test of the upgrade:
// they have the same length, so that one can be patched into the other.
const (
	firstVersion = "test-version-of-the-first-binary "
	otherVersion = "test-version-of-the-other-binary "
)

// bin makes a folder in which this test binary is called muster.
func bin(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "muster")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// house is a Redis, a server and masters, all real processes.
type house struct {
	t     testing.TB
	dir   string
	bin   string // path of muster
	redis *redistest.Server
	url   string   // of the server
	zone  string   // whose user of Redis the masters have
	env   []string // of roles, in place of what logs them in at Redis
	apart apart.Zones
	fleet *fakefleet.Fleet // where a test needs it

	server *process
}

// check fails the test unless the data of a zone is consistent.
func (h *house) check(zone string) {
	c := queue.DefaultConfig()
	c.URL, c.Embedded, c.Apart = h.redis.Config().URL, true, h.apart
	redistest.CheckIn(h.t, c, zone)
}

// newHouse starts redis-server and a muster server with the given inventory.
func newHouse(t testing.TB, inventory string, others ...string) *house {
	t.Helper()
	h := newCellar(t, inventory, others...)
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	return h
}

// newCellar starts redis-server and writes a configuration. At the end it checks that the data in
// Redis is consistent, in the zone default and in others.
func newCellar(t testing.TB, inventory string, others ...string) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), bin: filepath.Join(bin(t), "muster"), zone: "default"}
	users := "../../etc/users.acl"
	if len(others) > 0 {
		h.zone, users = "all", redistest.UsersFile(t, append(others, "default")...)
	}
	h.redis = redistest.StartServerWithUsers(t, users, nil)
	h.url = freeSocket(t)
	h.write("fleet.yaml", inventory)
	h.write("server.key", serverkey.File("testhouse", [serverkey.Size]byte{1}))
	m, err := founding.MakeKey(h.file("server.key"), 0)
	m.Made = true
	if err = errors.Join(err, m.MakeTrust("")); err != nil {
		t.Fatal(err)
	}
	h.config(nil)
	t.Cleanup(func() {
		for _, zone := range append(others, "default") {
			if h.apart[zone] == "" { // the Redis of such a zone has ended
				h.check(zone)
			}
		}
		redistest.CheckRefusals(t, h.redis)
	})
	return h
}

func (h *house) file(name string) string { return filepath.Join(h.dir, name) }

// write makes a file, or replaces it at once, so that a reader never sees half of it.
func (h *house) write(name, text string) {
	h.t.Helper()
	if err := os.WriteFile(h.file(name)+".new", []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(h.file(name)+".new", h.file(name)); err != nil {
		h.t.Fatal(err)
	}
}

// config writes the configuration; keys of the section master can be set.
func (h *house) config(master map[string]any) {
	h.t.Helper()
	h.configure(map[string]any{"master": master})
}

// configure writes the configuration; sections are added to, lists replaced.
func (h *house) configure(with map[string]any) {
	h.t.Helper()
	all := map[string]any{
		"redis":     map[string]any{"url": h.redis.Config().URL},
		"server":    map[string]any{"listen": listenOn(h.url), "key": h.file("server.key")},
		"master":    map[string]any{"children": 4, "slots": 1, "drain": "1m"},
		"node":      map[string]any{"name": "node1", "dir": h.file("node")},
		"trust":     map[string]any{"dir": h.file("trust")},
		"inventory": []string{h.file("fleet.yaml")},
		// The hosts are one machine here, so each uses a folder in its own home.
		"ssh": map[string]any{"record_dir": "/proc/none"},
		"log": map[string]any{"level": "debug"},
	}
	for key, value := range with {
		section, isSection := value.(map[string]any)
		if old, is := all[key].(map[string]any); is && isSection {
			maps.Copy(old, section)
		} else {
			all[key] = value
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("muster.yaml", string(text))
}

// rename gives the node another name in the configuration.
func (h *house) rename(name string) {
	h.t.Helper()
	text, err := os.ReadFile(h.file("muster.yaml"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("muster.yaml", strings.ReplaceAll(string(text), `"node1"`, `"`+name+`"`))
}

// master starts a master and waits until it works.
func (h *house) master() *process {
	h.t.Helper()
	m := h.start("master", "--config", h.file("muster.yaml"))
	m.await("master started")
	return m
}

// muster runs a command of the operator and returns what it printed on standard
// output, and its exit code.
func (h *house) muster(args ...string) (string, int) {
	h.t.Helper()
	bound := 4 * time.Minute // leaves time to print the output of the others if a command hangs
	if *wholeShow {
		bound = time.Hour
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), bound)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Env = append(os.Environ(), "MUSTER_URL="+h.url)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var ended *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &ended) {
		h.t.Fatalf("muster %s: %v, %v: %s", strings.Join(args, " "), err, ctx.Err(), &stderr)
	}
	if stderr.Len() > 0 {
		h.t.Logf("muster %s: %s", strings.Join(args, " "), &stderr)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// query runs a command with -o json and reads its answer.
func (h *house) query(into any, args ...string) int {
	h.t.Helper()
	out, code := h.muster(append(args, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		h.t.Fatalf("muster %s: exit %d, %v: %s", strings.Join(args, " "), code, err, out)
	}
	return code
}

// submit starts a command on all hosts of a selector and does not wait.
func (h *house) submit(on, cmd string) jobs.TaskID {
	h.t.Helper()
	var t jobs.TaskInfo
	if code := h.query(&t, "run", "exec", "--on", on, "--arg", "cmd="+cmd, "--detach"); code != 0 {
		h.t.Fatalf("muster run: exit %d", code)
	}
	return t.Task
}

// wait waits for the end of a task.
func (h *house) wait(id jobs.TaskID) jobs.TaskInfo {
	h.t.Helper()
	var t jobs.TaskInfo
	h.query(&t, "task", string(id), "--wait")
	if t.State != jobs.TaskEnded || t.Outcomes.Sum() != t.Total {
		h.t.Fatalf("task %s is %s: %d of %d jobs ended", id, t.State, t.Outcomes.Sum(), t.Total)
	}
	return t
}

func (h *house) jobs(id jobs.TaskID) []jobs.JobInfo {
	h.t.Helper()
	var list []jobs.JobInfo
	h.query(&list, "jobs", "--task", string(id))
	return list
}

func (h *house) node() jobs.Node {
	h.t.Helper()
	return h.awaitNode(func(jobs.Node) bool { return true })
}

// awaitNode reads the node until it is as wanted; the record of a node follows its changes within a
// second.
func (h *house) awaitNode(as func(jobs.Node) bool) (n jobs.Node) {
	h.t.Helper()
	h.lookUntil("the node", func(c *cli.Client) (any, bool, error) {
		var l api.NodeList
		err := c.Get(h.t.Context(), "/v1/nodes", nil, &l)
		if len(l.Nodes) != 1 {
			return l.Nodes, false, err
		}
		n = l.Nodes[0]
		return n, as(n), err
	})
	return n
}

// Pauses of a test that looks again and again for something that changes.
const (
	lookEvery    = 50 * time.Millisecond
	commandEvery = 200 * time.Millisecond // with a command, whose start takes 20 ms of a processor
)

// lookUntil asks the server until what it says is as wanted. It asks without a command: tests that
// wait beside each other would keep all processors busy with starts of processes.
func (h *house) lookUntil(what string, ask func(*cli.Client) (said any, as bool, err error)) {
	h.t.Helper()
	c, err := cli.NewClient(h.url, "")
	if err != nil {
		h.t.Fatal(err)
	}
	defer c.Close()
	for late, tick := h.late(), time.Tick(lookEvery); ; {
		said, as, err := ask(c)
		if err == nil && as {
			return
		}
		select {
		case <-late:
			h.t.Fatalf("%s stays %+v (%v)", what, said, err)
		case <-tick:
		}
	}
}

// late fires when a test has waited in vain.
func (h *house) late() <-chan time.Time { return time.After(2 * time.Minute) }

// task returns a task.
func (h *house) task(id jobs.TaskID) jobs.TaskInfo {
	h.t.Helper()
	var i jobs.TaskInfo
	h.query(&i, "task", string(id))
	return i
}

// awaitTask reads a task until it is as wanted.
func (h *house) awaitTask(id jobs.TaskID, as func(jobs.TaskInfo) bool) (i jobs.TaskInfo) {
	h.t.Helper()
	h.lookUntil("task "+string(id), func(c *cli.Client) (any, bool, error) {
		var err error
		i, err = c.Task(h.t.Context(), id, 0, 0)
		return i, err == nil && as(i), err
	})
	return i
}

// awaitJob reads a job until it is in a state.
func (h *house) awaitJob(id jobs.ID, state jobs.State) (j jobs.JobInfo) {
	h.t.Helper()
	h.lookUntil("job "+string(id), func(c *cli.Client) (any, bool, error) {
		j = jobs.JobInfo{}
		err := c.Get(h.t.Context(), "/v1/jobs/"+url.PathEscape(string(id)), nil, &j)
		return j, j.State == state, err
	})
	return j
}

// events counts the events of the zone, by name.
func (h *house) events() map[string]int {
	h.t.Helper()
	out := map[string]int{}
	for _, e := range h.happened() {
		out[e.Event]++
	}
	return out
}

// happened returns all events of the zone.
func (h *house) happened() (all []jobs.Happening) {
	h.t.Helper()
	q, err := queuetest.OpenLazy(h.redis.Config())
	if err != nil {
		h.t.Fatal(err)
	}
	defer q.Close()
	for after := ""; ; {
		list, last, err := q.Events(context.Background(), "default", after, 1000, 0)
		if err != nil {
			h.t.Fatal(err)
		}
		if len(list) == 0 {
			return all
		}
		all, after = append(all, list...), last
	}
}

// pretend starts a pretended fleet and returns it with its inventory file.
func pretend(t testing.TB, c fakefleet.Config) (*fakefleet.Fleet, string) {
	t.Helper()
	f, err := fakefleet.Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	dir := t.TempDir()
	if err := f.WriteFiles(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, fakefleet.InventoryFile))
	if err != nil {
		t.Fatal(err)
	}
	return f, string(text)
}

// held is a command that runs until letGo, so that the test may take its time.
const held = "while [ ! -e /tmp/go ]; do sleep 0.02; done"

// letGo ends the held commands on the hosts with these names, or without names on all, now and
// later.
func letGo(t testing.TB, f *fakefleet.Fleet, names ...string) {
	t.Helper()
	if err := f.Touch("/tmp/go", names...); err != nil {
		t.Fatal(err)
	}
}

// wantNoOverlap asks the hosts' log: two commands are never inside one host at once.
func wantNoOverlap(t testing.TB, f *fakefleet.Fleet) {
	t.Helper()
	for _, o := range f.Overlaps() {
		t.Errorf("two commands at once: %+v", o)
	}
}

func wantOutcomes(t testing.TB, got jobs.TaskInfo, want map[jobs.Outcome]int) {
	t.Helper()
	for o, n := range got.Outcomes {
		if n != want[o] {
			t.Errorf("%d %s, want %d (all: %s)", n, o, want[o], fmt.Sprint(got.Outcomes))
		}
	}
}

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/fleet"
	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/redistest"
)

const (
	hostCount = 200
	children  = 4 // of a node
	slots     = 2 // of a child

	stepTime  = 5 * time.Second // bound of a step of all runbooks below
	groupSize = 2               // the first hosts are pairs
	pairHosts = 40
	siteFrom  = 100 // hosts from here on are at a site with a limit
	siteTo    = 140
	siteMax   = 5
	imagesMax = 4
)

// lockTime is the duration of the lock of an attempt on its host.
var lockTime = jobs.AttemptTimeout(stepTime)

// The runbooks. Each step leaves the id of its task and its number on the host.
const runbooks = `
name: calm
arguments: {task: {type: string}, nap: {type: string}}
timeout: 5s
steps:
  - {name: one, run: "sleep {{nap}}; : {{task}}-1"}
  - {name: two, run: "sleep {{nap}}; : {{task}}-2"}
---
name: twice
arguments: {task: {type: string}, nap: {type: string}}
repeatable: true
timeout: 5s
steps: [{name: one, run: "sleep {{nap}}; : {{task}}-1"}]
---
name: rough
disruptive: true
arguments: {task: {type: string}, nap: {type: string}}
timeout: 5s
steps: [{name: one, run: "sleep {{nap}}; : {{task}}-1"}]
---
name: image
needs: [mirror/images]
arguments: {task: {type: string}, nap: {type: string}}
timeout: 5s
steps:
  - {name: one, run: "sleep {{nap}}; : {{task}}-1"}
  - {name: two, run: "sleep {{nap}}; : {{task}}-2"}
`

const allBooks = runbooks + "---\n" + onceRunbook + "---\n" + broughtRunbook

// house is all of muster as processes, with bad networks between them.
type house struct {
	t       *testing.T
	dir     string
	bin     string // of the operator
	all     []version
	first   func(n int) int // the index of the version with which the n-th of a role begins
	fleet   *fakefleet.Fleet
	real    []realHost
	redis   *redistest.Server
	cell    *cell // of the last node; nil: no namespaces here
	why     error // why there are none
	nodes   []*node
	servers []*node
}

// A node is a master or a server with its proxy to Redis.
type node struct {
	*process
	proxy  *proxy
	binary *installed
	url    string // of a server
	cell   *cell
}

// newHouse starts a house of -chaos.servers and -chaos.nodes. Which of its versions the n-th server,
// or the n-th node, has at first is said by a function; nil: one after the other.
func newHouse(t *testing.T, dir string, first func(n int) int) *house {
	t.Helper()
	h := &house{t: t, dir: dir, first: first}
	h.all = h.versions()
	h.bin = h.all[len(h.all)-1].path
	if first == nil {
		h.first = func(n int) int { return n % len(h.all) }
	}
	// All nodes require signed orders.
	for _, make := range [][]string{{"init", "--file", filepath.Join(dir, "server.key")},
		{"secrets", "keygen", filepath.Join(dir, "secrets.key")}} {
		if out, err := exec.Command(h.bin, make...).CombinedOutput(); err != nil {
			t.Fatalf("muster %s: %v: %s", make[0], err, out)
		}
	}
	f, err := fakefleet.Start(fakefleet.Config{Hosts: hostCount})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	h.fleet, h.real = f, startReal(t)
	// A write that Redis has confirmed is on the disk. With everysec a killed Redis may lose writes
	// that it held back while the disk was busy, and then no promise can hold.
	h.redis = redistest.StartServer(t, "--appendfsync", "always")
	h.why = errors.New("not wanted")
	if *netns {
		h.cell, h.why = newCell(f.Port())
	}
	if h.why == nil {
		t.Cleanup(func() {
			if err := h.cell.end(); err != nil {
				t.Error(err)
			}
		})
	}
	h.writeFiles()
	t.Cleanup(h.stop)
	for i := range *serverCount {
		h.servers = append(h.servers, h.start("server", i+1, nil))
	}
	for i := range *nodeCount {
		var in *cell
		if i == *nodeCount-1 {
			in = h.cell
		}
		h.nodes = append(h.nodes, h.start("master", i+1, in))
	}
	return h
}

func (h *house) partitions() string {
	if h.cell == nil {
		return fmt.Sprintf("the proxy, which sends the last node away (no namespace: %v)", h.why)
	}
	return "taking down the link to the network namespace of the last node"
}

// writeFiles writes what servers read.
func (h *house) writeFiles() {
	h.t.Helper()
	if err := h.fleet.WriteFiles(h.dir); err != nil {
		h.t.Fatal(err)
	}
	hosts := h.fleet.Hosts()
	for i := range hosts {
		hosts[i].Customer = "acme"
		if i < pairHosts {
			hosts[i].Group = groupOf(i)
		}
		if i >= siteFrom && i < siteTo {
			hosts[i].Labels["site"] = "zrh1"
		}
	}
	for _, r := range h.real {
		hosts = append(hosts, r.Host)
	}
	text, err := json.Marshal(struct {
		Hosts  []fleet.Host   `json:"hosts"`
		Limits map[string]int `json:"limits"`
	}{hosts, map[string]int{"site/zrh1": siteMax, "mirror/images": imagesMax}})
	if err != nil {
		h.t.Fatal(err)
	}
	h.write("inventory.yaml", string(text))
	for i, text := range strings.Split(allBooks, "---\n") {
		h.write(fmt.Sprintf("runbook%d.yaml", i), text)
	}
}

func groupOf(i int) string { return fmt.Sprint("pair", i/groupSize+1) }

// start starts a server or a master, behind a proxy of its own.
func (h *house) start(role string, n int, in *cell) *node {
	h.t.Helper()
	on := "127.0.0.1"
	if in != nil {
		on = in.here
	}
	proxy, err := newProxy(on, h.redis.Addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(proxy.end)
	name := fmt.Sprint(role, n)
	x := &node{proxy: proxy, cell: in, process: &process{name: name, dir: filepath.Join(h.dir, name)}}
	listen := filepath.Join(h.dir, name+".sock")
	x.url = "unix://" + listen
	var books []string
	for i := range strings.Count(allBooks, "---\n") + 1 {
		books = append(books, filepath.Join(h.dir, fmt.Sprintf("runbook%d.yaml", i)))
	}
	text, err := json.Marshal(map[string]any{
		"redis":  map[string]any{"url": "redis://" + proxy.addr() + "/0", "timeout": "1s"},
		"server": map[string]any{"listen": "unix:" + listen, "key": filepath.Join(h.dir, "server.key")},
		"trust":  map[string]any{"dir": filepath.Join(h.dir, "trust")},
		"master": map[string]any{"children": children, "slots": slots, "drain": "30s", "poll": "2s"},
		"node":   map[string]any{"name": fmt.Sprint("n", n), "dir": filepath.Join(x.dir, "node")},
		"ssh": map[string]any{"keepalive": "2s", "tcp": "3s", "handshake": "3s", "auth": "3s", "channel": "3s",
			"record_dir": "/proc/none"}, // real hosts are one machine here: each uses its home
		"secrets":   map[string]any{"key": filepath.Join(h.dir, "secrets.key")},
		"inventory": []string{filepath.Join(h.dir, "inventory.yaml")},
		"runbooks":  books,
		"log":       map[string]any{"level": "debug"},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.write(name+".yaml", string(text))
	x.binary = &installed{path: filepath.Join(h.dir, name+"-muster"), list: h.all}
	if err := x.binary.install(h.first(n)); err != nil {
		h.t.Fatal(err)
	}
	x.args = []string{x.binary.path, role, "--config", filepath.Join(h.dir, name+".yaml")}
	if in != nil {
		x.args = in.within(x.args...)
	}
	if err := run(x.process); err != nil {
		h.t.Fatal(err)
	}
	return x
}

// muster runs a command of the operator at one of the servers.
func (h *house) muster(ctx context.Context, url string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.bin, args...)
	cmd.Env = append(os.Environ(), "MUSTER_URL="+url)
	out, err := cmd.Output()
	if err != nil {
		text := ""
		if e, ok := err.(*exec.ExitError); ok {
			text = string(e.Stderr)
		}
		return string(out), fmt.Errorf("muster %s: %w: %s", strings.Join(args, " "), err, text)
	}
	return string(out), nil
}

// stop ends everything that was started, and what masters have left behind.
func (h *house) stop() {
	for _, n := range append(h.nodes, h.servers...) {
		if !n.process.stop() {
			h.t.Errorf("%s did not end within a minute of TERM", n.name)
		}
	}
	for _, n := range h.nodes {
		_, left := pids(n.dir)
		for _, pid := range left {
			h.t.Errorf("a child of %s, pid %d, outlived everything", n.name, pid)
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	h.nodes, h.servers = nil, nil
}

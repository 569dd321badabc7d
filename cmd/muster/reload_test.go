package main

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/internal/fakefleet"
	"muster/jobs"
)

const (
	extraHost = "hosts: [{name: extra1, address: 127.77.0.1, user: root, key: /etc/id," +
		" host_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEtcN8+Z7kGpCJ0hS0cE7rYl7dW0C0Qn8pE1hT3m9a5H}]\n"
	helloRunbook = "name: hello\nsteps: [{name: say, run: echo hello}]\n"
)

// know checks the state of the server after a reload: the number of hosts, whether there is a
// runbook hello, and a part of its health.
func (h *house) know(hosts int, hello bool, health string) {
	h.t.Helper()
	var list []fleet.Host
	h.query(&list, "hosts")
	var books []api.Runbook
	h.query(&books, "runbooks")
	h.awaitHealth(health)
	there := slices.ContainsFunc(books, func(b api.Runbook) bool { return b.Name == "hello" })
	if len(list) != hosts || there != hello {
		h.t.Errorf("%d hosts, hello %v; want %d hosts, hello %v", len(list), there, hosts, hello)
	}
}

// awaitHealth waits until muster health says these words. A server that was started on a busy
// machine says first that the tables of its history are not usable yet.
func (h *house) awaitHealth(words string) {
	h.t.Helper()
	var state api.Health
	for late, look := h.late(), time.Tick(commandEvery); ; {
		h.query(&state, "health")
		if strings.Contains(state.Status, words) {
			return
		}
		select {
		case <-look:
		case <-late:
			h.t.Fatalf("health is %q, not %q", state.Status, words)
		}
	}
}

func TestAReloadOfTheServerReadsItsListsAgain(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	h.write("more.yaml", extraHost)
	h.write("hello.yaml", helloRunbook)
	said := 0
	hup := func(words string) {
		t.Helper()
		said = strings.Count(h.server.log.String(), words)
		h.server.cmd.Process.Signal(syscall.SIGHUP)
		h.server.awaitTimes(words, said+1)
	}
	files := func(names ...string) map[string]any {
		list := []string{h.file("fleet.yaml")}
		for _, n := range names {
			list = append(list, h.file(n))
		}
		return map[string]any{"inventory": list, "runbooks": []string{h.file("hello.yaml")}}
	}

	h.know(10, false, "ok")
	h.configure(files("more.yaml"))
	hup("configuration reloaded")
	h.know(11, true, "ok")

	h.configure(files("missing.yaml"))
	hup("the old one stays")
	h.know(11, true, "missing.yaml")

	h.write("muster.yaml", "invenntory: []\n")
	hup("the old configuration stays")
	h.know(11, true, "invenntory")

	h.configure(map[string]any{"inventory": []string{}})
	hup("the old one stays")
	h.know(11, false, "no file is listed")

	h.configure(map[string]any{"runbooks": []string{h.file("muster.yaml")}})
	hup("the old one stays")
	h.know(10, false, "the new configuration was refused")

	h.configure(map[string]any{"server": map[string]any{"listen": "127.0.0.1:0"}})
	hup("only a restart can do that")
	h.know(10, false, "only a restart")

	h.config(nil)
	hup("configuration reloaded")
	h.know(10, false, "ok")
}

func TestAReloadOfUpIsRefusedAsAWhole(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 10})
	h := newHouse(t, inventory)
	h.url = freeSocket(t)
	h.config(nil)
	up := h.start("up", "--config", h.file("muster.yaml"))
	up.await("server listens")

	h.configure(map[string]any{"master": map[string]any{"children": 7},
		"server": map[string]any{"listen": listenOn(freeSocket(t))}})
	up.cmd.Process.Signal(syscall.SIGHUP)
	up.await("only a restart can do that")
	n := h.awaitNode(func(n jobs.Node) bool { return n.Note != "" })
	if n.Limit != 4 || !strings.Contains(n.Note, "only a restart") {
		t.Errorf("limit %d, note %q", n.Limit, n.Note)
	}
	h.config(map[string]any{"children": 7})
	up.cmd.Process.Signal(syscall.SIGHUP)
	n = h.awaitNode(func(n jobs.Node) bool { return n.Limit != 4 })
	if n.Limit != 7 || n.Note != "" {
		t.Errorf("limit %d, note %q", n.Limit, n.Note)
	}
}

package main

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli"
	"muster/internal/fakefleet"
	"muster/jobs"
)

// A node whose folder trust is damaged begins no jobs, and does not keep that to its own log.
func TestANodeSaysThatItCannotReadWhomItTrusts(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	h.master()
	policy, err := os.ReadFile(h.file("trust/policy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h.write("trust/policy.yaml", "rules:\n  - {level: sever, mode: require}\n")
	n := h.awaitNode(func(n jobs.Node) bool { return n.Doubt != "" })
	for _, want := range []string{"this node cannot read whom it trusts", "policy.yaml:2", "sever"} {
		if !strings.Contains(n.Note, want) {
			t.Errorf("nodes shows %q, want %q in it", n.Note, want)
		}
	}
	var health api.Health
	if code := h.query(&health, "health"); code != cli.ExitNotAll || !health.Doubt ||
		!strings.Contains(health.Status, "node node1 cannot read whom it trusts and begins no jobs: ") {
		t.Errorf("health ends with %d: %+v", code, health)
	}
	if text := h.metrics(); !strings.Contains(text, "\nmuster_nodes_in_doubt 1\n") {
		t.Errorf("metrics count no such node")
	}
	id := h.submit("all", "true")
	h.write("trust/policy.yaml", string(policy))
	h.awaitNode(func(n jobs.Node) bool { return n.Doubt == "" && n.Note == "" })
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 1})
	// The server looks at the folder when it writes history next.
	for late, look := h.late(), time.Tick(commandEvery); h.query(&health, "health") != cli.ExitOK; {
		select {
		case <-late:
			t.Fatalf("afterwards health says %+v", health)
		case <-look:
		}
	}
}

// A job that ran although its order does not hold shows that, and so does its task.
func TestAJobShowsThatItsOrderWasDoubted(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 2})
	h := newHouse(t, inventory)
	h.write("trust/policy.yaml", "rules:\n  - {level: server, mode: warn}\n")
	h.write("trust/allowed_signers", "server:other ssh-ed25519 "+
		"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n")
	h.master()
	id := h.submit("all", "true")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: 2})
	for _, ask := range [][]string{ // the event names one of the two jobs
		{"job", string(jobs.NewID(id, "fw0001"))}, {"job", string(jobs.NewID(id, "fw0002"))}, {"task", string(id)},
	} {
		for late := h.late(); ; {
			_, _, words := h.plainly("", ask...)
			if strings.Contains(words, "look: a node doubted the order of this task, and ran its jobs all the same "+
				"(mode warn): ") && strings.Contains(words, "allowed") {
				break
			}
			select {
			case <-late:
				t.Fatalf("muster %v says %s", ask, words)
			default: // history is half a second behind
			}
		}
	}
}

// metrics returns what the server shows to Prometheus.
func (h *house) metrics() string {
	h.t.Helper()
	res, err := h.get("/metrics")
	if err != nil {
		h.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return string(text)
}

package main

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"muster/internal/fakefleet"
	"muster/jobs"
	"muster/testkit/sshtest"
)

// All children of a node use one jump host that accepts three logins at a time: they pace
// themselves together, so that it turns few away, and no job notices.
func TestChildrenDoNotCrowdAJumpHost(t *testing.T) {
	t.Parallel()
	const hosts, kids = 36, 12
	f, err := fakefleet.Start(fakefleet.Config{Hosts: hosts})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.WriteFiles(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSSHD(t, sshtest.Options{Config: []string{"MaxStartups 3:100:3"}})
	gate := newTurnstile(t, fmt.Sprintf("%s:%d", s.Address, s.Port))
	var inventory strings.Builder
	fmt.Fprintf(&inventory, "hosts:\n  - {name: bastion, address: 127.0.0.1, port: %s, user: %s, key: %s, "+
		"host_key: %q}\n", gate.port, s.User, s.Key, s.HostKey)
	for _, h := range f.Hosts() {
		fmt.Fprintf(&inventory, "  - {name: %s, address: %s, port: %d, user: %s, key: %s, host_key: %q, "+
			"jump: bastion, fence: none}\n", h.Name, h.Address, h.Port, h.User, h.Key, h.HostKeys[0])
	}
	h := newHouse(t, inventory.String())
	h.config(map[string]any{"children": kids})
	h.master()
	id := h.submit("fw*", "sleep 1")
	wantOutcomes(t, h.wait(id), map[jobs.Outcome]int{jobs.Succeeded: hosts})
	for _, j := range h.jobs(id) {
		if j.Attempt != 1 {
			t.Errorf("%s needed %d attempts: %s", j.ID, j.Attempt, j.Error)
		}
	}
	// They learn from the first login too many. Each child on its own would make 9 at once.
	in, away := gate.in.Load(), gate.away.Load()
	if t.Logf("%d logins, %d turned away", in, away); in < kids || away > kids/2 {
		t.Errorf("of %d logins %d were turned away, want %d and more, and at most %d", in, away,
			kids, kids/2)
	}
}

// turnstile is a line to an sshd that counts accepted and refused logins.
type turnstile struct {
	port     string
	in, away atomic.Int32
}

func newTurnstile(t *testing.T, addr string) *turnstile {
	t.Helper()
	g := &turnstile{}
	g.port = newLine(t, addr, nil, g.answer)
	return g
}

// answer forwards the bytes of the sshd. To a refused client it sends no greeting.
func (g *turnstile) answer(up, down net.Conn) {
	defer down.Close()
	buf := make([]byte, 32<<10)
	n, _ := up.Read(buf)
	if strings.HasPrefix(string(buf[:n]), "SSH-") {
		g.in.Add(1)
	} else {
		g.away.Add(1)
	}
	if _, err := down.Write(buf[:n]); err == nil {
		io.Copy(down, up)
	}
}

package server_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/fleet"
	"muster/server"
)

// moving is an inventory that changes when a test says so.
type moving struct {
	mu      sync.Mutex
	hosts   []fleet.Host
	err     error
	changed bool
	asked   chan struct{} // whenever the server has asked whether it changed
}

func (m *moving) Read(context.Context, time.Time) (*fleet.Inventory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return nil, m.err
	}
	return fleet.New(m.hosts)
}

func (m *moving) Changed(time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case m.asked <- struct{}{}:
	default:
	}
	is := m.changed
	m.changed = false
	return is
}

// become changes the inventory, and waits until the server has seen it: it asks
// again when it has done with the last answer.
func (m *moving) become(t *testing.T, hosts []fleet.Host, err error) {
	t.Helper()
	m.mu.Lock()
	m.hosts, m.err, m.changed = hosts, err, true
	select {
	case <-m.asked:
	default:
	}
	m.mu.Unlock()
	for range 2 {
		select {
		case <-m.asked:
		case <-time.After(30 * time.Second):
			t.Fatal("the server does not ask")
		}
	}
}

func TestAChangedInventoryIsFollowed(t *testing.T) {
	t.Parallel()
	list := hosts()
	m := &moving{hosts: list, asked: make(chan struct{}, 1)}
	w := start(t, setup{source: m})
	var h server.Health
	w.call("GET", "/v1/health", nil, &h)
	first := h.Inventory

	m.become(t, list[1:], nil)
	w.call("GET", "/v1/health", nil, &h)
	p, err := w.queue.Inventory(t.Context())
	if err != nil || h.Inventory == first || h.Hosts != 3 || p.Version != h.Inventory || p.Hosts != 3 {
		t.Errorf("%+v %+v %v", h, p, err)
	}
	if log := w.log.String(); !strings.Contains(log, "1 removed: "+list[0].Name) ||
		!strings.Contains(log, "hosts have no host key, so their jobs fail: number=3") {
		t.Error(log)
	}
	var all server.PublishedInventory
	if w.call("GET", "/v1/inventory", nil, &all); len(all.Hosts) != 3 || all.Version != h.Inventory {
		t.Errorf("%+v", all)
	}

	for range 2 { // it is said once
		m.become(t, nil, errBroken)
	}
	w.call("GET", "/v1/health", nil, &h)
	if h.Inventory != p.Version || !strings.Contains(h.Status, errBroken.Error()) {
		t.Errorf("%+v", h)
	}
	if n := strings.Count(w.log.String(), "the changed inventory is refused"); n != 1 {
		t.Errorf("said %d times", n)
	}
	w.wantMetrics("muster_inventory_refused 1", "muster_inventory_hosts 3",
		`muster_inventory_changes_total{result="published"} 2`,
		`muster_inventory_changes_total{result="refused"} 2`)

	m.become(t, list, nil)
	h = server.Health{}
	if w.call("GET", "/v1/health", nil, &h); h.Status != "ok" || h.Inventory != first {
		t.Errorf("%+v", h)
	}
	if !strings.Contains(w.log.String(), "the inventory is right again") {
		t.Error(w.log.String())
	}
	w.wantMetrics("muster_inventory_refused 0")
}

func (w *world) wantMetrics(lines ...string) {
	w.t.Helper()
	_, text := w.raw("GET", "/metrics", nil, nil)
	for _, line := range lines {
		if !strings.Contains(string(text), line+"\n") {
			w.t.Errorf("metrics have no %s", line)
		}
	}
}

// While a source takes its time, the server answers.
func TestASlowInventoryHoldsUpNobody(t *testing.T) {
	t.Parallel()
	slow := &slowInventory{begun: make(chan struct{}), end: make(chan struct{})}
	w := start(t, setup{})
	reloaded := make(chan error, 1)
	go func() { reloaded <- w.server.UseInventory(t.Context(), slow) }()
	<-slow.begun
	var h server.Health
	if w.call("GET", "/v1/health", nil, &h); h.Status != "ok" {
		t.Errorf("%+v", h)
	}
	close(slow.end)
	if err := <-reloaded; err == nil {
		t.Error("no error")
	}
}

type slowInventory struct{ begun, end chan struct{} }

func (s *slowInventory) Read(context.Context, time.Time) (*fleet.Inventory, error) {
	close(s.begun)
	<-s.end
	return nil, errors.New("too late")
}

func (*slowInventory) Changed(time.Time) bool { return false }

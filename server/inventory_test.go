package server_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/server/metrics"
	"muster/server/stock"
	"muster/testkit/queuetest"
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
	var h api.Health
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
	var all api.PublishedInventory
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
	h = api.Health{}
	if w.call("GET", "/v1/health", nil, &h); h.Status != "ok" || h.Inventory != first {
		t.Errorf("%+v", h)
	}
	if !strings.Contains(w.log.String(), "the inventory is right again") {
		t.Error(w.log.String())
	}
	w.wantMetrics("muster_inventory_refused 0")
}

// Each zone has locks of its own: a host with work in one zone comes to another one later, with the
// other member of its group. All else is in force at once.
func TestAHostAtWorkComesToAnotherZoneLater(t *testing.T) {
	t.Parallel()
	list := hosts()
	list[0].Group, list[1].Group = "pair", "pair"
	m := &moving{hosts: list, asked: make(chan struct{}, 1)}
	w := start(t, setup{source: m})
	var first, h api.Health
	w.call("GET", "/v1/health", nil, &first)
	id := w.submit(api.Submit{Runbook: "exec", On: list[0].Name, Args: map[string]string{"cmd": "true"}}).Task
	next := slices.Clone(list)
	next[0].Zone, next[1].Zone, next[2].User = "far", "far", "admin"
	m.become(t, next, nil)
	w.call("GET", "/v1/health", nil, &h)
	mine := w.server.Stock()
	if h.Inventory == first.Inventory || !strings.Contains(h.Status, list[0].Name+" in default (job "+string(id)) ||
		mine.ZoneOf(list[0].Name) != "default" || mine.ZoneOf(list[1].Name) != "default" {
		t.Errorf("while it has work: %+v, %s", h, mine.ZoneOf(list[1].Name))
	}
	if changed, _ := mine.Now().Host(list[2].Name); changed.User != "admin" {
		t.Errorf("another host waits, too: %+v", changed)
	}
	// A server that starts meanwhile finds the same.
	other, err := stockElsewhere(t, w, next)
	if err != nil || other.ZoneOf(list[0].Name) != "default" || other.Complaint() == "" {
		t.Errorf("another server: %v, %s", err, other.Complaint())
	}
	w.call("POST", "/v1/tasks/"+string(id)+"/cancel", nil, nil)
	m.become(t, next, nil)
	h = api.Health{}
	if w.call("GET", "/v1/health", nil, &h); h.Status != "ok" || mine.ZoneOf(list[0].Name) != "far" ||
		mine.ZoneOf(list[1].Name) != "far" {
		t.Errorf("after its work: %+v", h)
	}
}

// stockElsewhere is the inventory of another server at the same Redis, which starts now.
func stockElsewhere(t *testing.T, w *world, hosts []fleet.Host) (*stock.Store, error) {
	t.Helper()
	s := stock.NewStore(stock.Needs{Source: stock.SourceFunc(func() (*fleet.Inventory, error) { return fleet.New(hosts) }),
		Publishing: w.queue, Counting: w.queue, Moving: w.queue, Meters: metrics.New("test"), Log: hclog.NewNullLogger(),
		Now: time.Now})
	return s, s.Reload(t.Context())
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

// A change that Redis did not take is tried until it does.
func TestAnInventoryThatRedisDidNotTakeIsPublishedLater(t *testing.T) {
	t.Parallel()
	m := &moving{hosts: hosts(), asked: make(chan struct{}, 1)}
	deaf := &deafQueue{tried: make(chan struct{}, 100)}
	w := start(t, setup{source: m, wrap: func(q *queuetest.Queue) everything {
		deaf.Queue = q
		return deaf
	}})
	deaf.deaf.Store(true)
	m.mu.Lock()
	m.hosts, m.changed = hosts()[1:], true
	m.mu.Unlock()
	<-deaf.tried
	<-deaf.tried
	var h api.Health
	w.call("GET", "/v1/health", nil, &h)
	if h.Hosts != len(hosts()) || !strings.Contains(h.Status, "deaf") {
		t.Errorf("%+v", h)
	}
	select { // as long as something is left to publish it does not ask
	case <-m.asked:
	default:
	}
	deaf.deaf.Store(false)
	for heard := false; !heard; {
		select {
		case <-deaf.tried:
		case <-m.asked:
			heard = true
		case <-time.After(30 * time.Second):
			t.Fatal("it was not published")
		}
	}
	h = api.Health{}
	if w.call("GET", "/v1/health", nil, &h); h.Hosts != len(hosts())-1 || h.Status != "ok" {
		t.Errorf("%+v", h)
	}
}

// deafQueue takes no inventory while it is deaf.
type deafQueue struct {
	*queuetest.Queue
	deaf  atomic.Bool
	tried chan struct{}
}

func (d *deafQueue) Publish(ctx context.Context, version string, hosts []fleet.Host,
	limits []fleet.Limit) error {
	if !d.deaf.Load() {
		return d.Queue.Publish(ctx, version, hosts, limits)
	}
	select {
	case d.tried <- struct{}{}:
	default:
	}
	return errors.New("deaf")
}

// While a source takes its time, the server answers.
func TestASlowInventoryHoldsUpNobody(t *testing.T) {
	t.Parallel()
	slow := &slowInventory{begun: make(chan struct{}), end: make(chan struct{})}
	w := start(t, setup{})
	reloaded := make(chan error, 1)
	go func() { reloaded <- w.server.Stock().Use(t.Context(), slow) }()
	<-slow.begun
	var h api.Health
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

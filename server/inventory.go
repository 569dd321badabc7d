package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue/hub"
)

// Inventory is where the hosts come from.
type Inventory interface {
	// Read reads all of it, host keys resolved. Its error has every mistake.
	Read(ctx context.Context, now time.Time) (*fleet.Inventory, error)
	// Changed tells whether Read may answer something else than the last time.
	Changed(now time.Time) bool
}

// InventoryFunc is an inventory that changes only when somebody says so.
type InventoryFunc func() (*fleet.Inventory, error)

// Read calls the function.
func (f InventoryFunc) Read(context.Context, time.Time) (*fleet.Inventory, error) { return f() }

// Changed is false.
func (InventoryFunc) Changed(time.Time) bool { return false }

// followEvery is how often it is asked whether the inventory has changed, so that
// a change is in force within two seconds.
const followEvery = 500 * time.Millisecond

// store keeps the inventory that submits are resolved with.
type store struct {
	current atomic.Pointer[stock]
	moment  momentLabels

	reading chan struct{} // has an element during a reload: one at a time, which may take long

	mu        sync.Mutex // guards what follows
	source    *patient   // nil: none is configured
	refused   string     // why the last reload did not come into force
	unheard   bool       // it was right, but Redis did not take it
	config    string     // why the last configuration did not
	elsewhere string     // what another server has published instead
}

// stock is an inventory and its version, which costs something to compute.
type stock struct {
	*fleet.Inventory
	version string
}

// errNoInventory says what to do about it.
var errNoInventory = errors.New("no inventory is configured, so no host is known: list its files " +
	"under `inventory` in muster.yaml, or in MUSTER_INVENTORY, and start the server again")

// errEmptied is a reload after which no host would be known.
var errEmptied = errors.New("no file is listed under `inventory` any more: without one " +
	"no host is known; to do without, start the server again")

// UseInventory is ReloadInventory from elsewhere: from now on the source takes the
// place of Deps.Inventory. nil means that none is configured, which only a server
// that has none takes for no mistake.
func (s *Server) UseInventory(ctx context.Context, source Inventory) error {
	st := &s.stock
	if source == nil && st.current.Load() != nil {
		source = InventoryFunc(func() (*fleet.Inventory, error) { return nil, errEmptied })
	}
	st.mu.Lock()
	st.source = newPatient(source)
	st.mu.Unlock()
	return s.ReloadInventory(ctx)
}

// Refuse notes why a new configuration did not come into force, or with nil that
// it did; health says so.
func (s *Server) Refuse(err error) {
	s.stock.mu.Lock()
	defer s.stock.mu.Unlock()
	s.stock.config = ""
	if err != nil {
		s.stock.config = err.Error()
	}
}

// ReloadInventory reads the inventory anew, publishes it and uses it from now
// on. If that fails the earlier one stays in force, and health says why.
func (s *Server) ReloadInventory(ctx context.Context) error {
	st := &s.stock
	select {
	case st.reading <- struct{}{}:
		defer func() { <-st.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	st.mu.Lock()
	source := st.source
	st.mu.Unlock()
	if source == nil {
		return nil
	}
	inv, err := source.Read(ctx, s.now())
	unheard := false
	if err == nil && inv != nil {
		err = s.publish(ctx, inv)
		unheard = err != nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.refused, st.unheard = "", unheard
	if err != nil {
		st.refused = err.Error()
		s.meters.Inventory("refused")
		return ofInventory(err)
	}
	st.elsewhere = ""
	return nil
}

// ofInventory says that an error is about the inventory, unless it does so itself: those of
// files that cannot be read do, mistakes in them begin with their place.
func ofInventory(err error) error {
	if text := err.Error(); strings.HasPrefix(text, "inventory: ") ||
		strings.HasPrefix(text, "inventory ") {
		return err
	}
	return fmt.Errorf("inventory: %w", err)
}

// publish makes an inventory the one in force, and logs what is different in it.
func (s *Server) publish(ctx context.Context, inv *fleet.Inventory) error {
	st := &s.stock
	before := st.current.Load()
	if before != nil && before.Inventory == inv {
		return nil
	}
	next := &stock{inv, inv.Version()}
	if err := s.queue.Hub.Inventory.Publish(ctx, next.version, inv.Hosts(), inv.Limits()); err != nil {
		return err
	}
	st.current.Store(next)
	if before != nil && before.version == next.version {
		return nil
	}
	s.meters.Inventory("published")
	s.logInventory(before, next)
	return nil
}

// warningsLogged bounds the lines about one inventory.
const warningsLogged = 10

func (s *Server) logInventory(before, next *stock) {
	if before == nil {
		s.log.Info("inventory published", "version", next.version, "hosts", next.Len())
	} else {
		s.log.Info("inventory changed", "version", next.version, "hosts", next.Len(),
			"changes", fleet.Diff(before.Inventory, next.Inventory).String())
	}
	warnings := next.Warnings()
	for _, w := range warnings[:min(len(warnings), warningsLogged)] {
		s.log.Warn("inventory", "warning", w)
	}
	if more := len(warnings) - warningsLogged; more > 0 {
		s.log.Warn("inventory", "further warnings", more, "list", "muster hosts check")
	}
	if without := next.WithoutKey(); len(without) > 0 {
		s.log.Warn("hosts have no host key, so their jobs fail", "number", len(without),
			"hosts", clip(fleet.Fold(without)), "help", "muster hosts enroll")
	}
}

// followSources reads the inventory again whenever it has changed, until ctx is done. A
// mistake is logged when it comes and when it goes.
func (s *Server) followSources(ctx context.Context, ticks <-chan time.Time) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
		st := &s.stock
		st.mu.Lock()
		source, unheard := st.source, st.unheard
		st.mu.Unlock()
		if source == nil || !unheard && !source.Changed(ctx, s.now()) {
			continue
		}
		wrong := ""
		if err := s.ReloadInventory(ctx); err != nil {
			wrong = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return
		case wrong != "" && wrong != said:
			s.log.Error("the changed inventory is refused, the earlier one stays", "error", wrong)
		case wrong == "" && said != "":
			s.log.Info("the inventory is right again")
		}
		said = wrong
	}
}

type inventoryOutput struct{ Body api.PublishedInventory }

// inventory answers with the inventory in force.
func (s *Server) inventory(context.Context, *nothing) (*inventoryOutput, error) {
	now, err := s.stock.get()
	if err != nil {
		return nil, refusal(mistakes("path", err))
	}
	out := &inventoryOutput{api.PublishedInventory{Version: now.version, Hosts: now.Hosts(),
		Limits: []api.DefinedLimit{}}}
	if out.Body.Hosts == nil {
		out.Body.Hosts = []fleet.Host{}
	}
	for _, l := range now.Limits() {
		out.Body.Limits = append(out.Body.Limits, api.DefinedLimit(l))
	}
	return out, nil
}

// get is the inventory in force.
func (st *store) get() (*stock, error) {
	if now := st.current.Load(); now != nil {
		return now, nil
	}
	return nil, errNoInventory
}

// complaint is what is wrong with what was read last; empty: nothing.
func (st *store) complaint(now time.Time) string {
	st.mu.Lock()
	defer st.mu.Unlock()
	var wrong []string
	if st.config != "" {
		wrong = append(wrong, "the new configuration was refused, the earlier one stays in force: "+
			st.config)
	}
	if st.refused != "" {
		wrong = append(wrong, "the new inventory was refused, the earlier one stays in force: "+
			st.refused)
	}
	if st.source != nil {
		if text := st.source.slow(now); text != "" {
			wrong = append(wrong, text)
		}
	}
	if st.elsewhere != "" {
		wrong = append(wrong, st.elsewhere)
	}
	return strings.Join(wrong, "; ")
}

// left tells whether the host of a job that is not over is in the inventory no more.
// The job goes on with what its task was submitted with.
func (st *store) left(j jobs.JobInfo) bool {
	now := st.current.Load()
	if now == nil || j.Outcome != "" {
		return false
	}
	_, there := now.Host(j.Host)
	return !there
}

// isRefused tells whether what was read last did not come into force.
func (st *store) isRefused() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.refused != ""
}

// followInventory compares with what is published. A Redis that has forgotten it
// gets it again, or no worker would know a host. Another one comes from a server
// with other files, which a person has to look at.
func (s *Server) followInventory(ctx context.Context) error {
	st := &s.stock
	st.mu.Lock()
	defer st.mu.Unlock()
	mine := st.current.Load()
	if mine == nil {
		return nil
	}
	published, err := s.queue.Hub.Inventory.Inventory(ctx)
	if err != nil {
		return err
	}
	st.elsewhere = ""
	version := published.Version
	if version == mine.version {
		lost, err := s.lostZones(ctx, mine)
		if err != nil {
			return err
		}
		if len(lost) > 0 {
			s.log.Warn("zones have lost the inventory: it is published again", "zones",
				strings.Join(lost, ","), "version", version)
			version = ""
		}
	}
	switch version {
	case mine.version:
	case "":
		return s.queue.Hub.Inventory.Publish(ctx, mine.version, mine.Hosts(), mine.Limits())
	default:
		st.elsewhere = otherInventory(published, mine.version)
	}
	return nil
}

// lostZones are those of which Redis has not all hosts, although the hub knows that the
// inventory is published: a cluster has lost the node of that zone, and not that of the hub.
func (s *Server) lostZones(ctx context.Context, mine *stock) ([]string, error) {
	want := map[string]int{}
	for _, h := range mine.Hosts() {
		want[h.Zone]++
	}
	zones := slices.Sorted(maps.Keys(want))
	has, err := s.queue.Hub.Members.HostsOf(ctx, mine.version, zones)
	return slices.DeleteFunc(zones, func(zone string) bool { return has[zone] >= want[zone] }), err
}

func otherInventory(p hub.Published, mine string) string {
	return fmt.Sprintf("another server has published inventory %s with %d hosts, this one works "+
		"with %s: give both the same files and reload", p.Version, p.Hosts, mine)
}

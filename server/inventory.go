package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"muster/fleet"
	"muster/jobs/queue"
)

// store keeps the inventory that submits are resolved with.
type store struct {
	read    func() (*fleet.Inventory, error) // nil: none is configured
	current atomic.Pointer[stock]
	moment  momentLabels

	mu        sync.Mutex // one reload at a time; guards what follows, and read
	refused   string     // why the last reload did not come into force
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

// UseInventory is ReloadInventory with other files: from now on read takes the
// place of Deps.Inventory. nil means that none are configured, which only a server
// that has none takes for no mistake.
func (s *Server) UseInventory(ctx context.Context,
	read func() (*fleet.Inventory, error)) error {
	st := &s.stock
	if read == nil && st.current.Load() != nil {
		read = func() (*fleet.Inventory, error) { return nil, errEmptied }
	}
	st.mu.Lock()
	st.read = read
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
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.read == nil {
		return nil
	}
	inv, err := st.read()
	if err == nil && inv != nil {
		next := &stock{inv, inv.Version()}
		if err = s.queue.Publish(ctx, next.version, inv.Hosts(), inv.Limits()); err == nil {
			st.current.Store(next)
			st.elsewhere = ""
		}
	}
	st.refused = ""
	if err != nil {
		st.refused = err.Error()
		return fmt.Errorf("inventory: %w", err)
	}
	return nil
}

// get is the inventory in force.
func (st *store) get() (*stock, error) {
	if now := st.current.Load(); now != nil {
		return now, nil
	}
	return nil, errNoInventory
}

// complaint is what is wrong with what was read last; empty: nothing.
func (st *store) complaint() string {
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
	if st.elsewhere != "" {
		wrong = append(wrong, st.elsewhere)
	}
	return strings.Join(wrong, "; ")
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
	published, err := s.queue.Inventory(ctx)
	if err != nil {
		return err
	}
	st.elsewhere = ""
	switch published.Version {
	case mine.version:
	case "":
		return s.queue.Publish(ctx, mine.version, mine.Hosts(), mine.Limits())
	default:
		st.elsewhere = otherInventory(published, mine.version)
	}
	return nil
}

func otherInventory(p queue.Published, mine string) string {
	return fmt.Sprintf("another server has published inventory %s with %d hosts, this one works "+
		"with %s: give both the same files and reload", p.Version, p.Hosts, mine)
}

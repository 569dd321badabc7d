package stock

import (
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/read"
)

// A Source has the hosts.
type Source interface {
	// Read reads all of it, host keys resolved. Its error has every mistake.
	Read(ctx context.Context, now time.Time) (*fleet.Inventory, error)
	// Changed reports whether Read may answer something else than the last time.
	Changed(now time.Time) bool
}

// SourceFunc is a source that changes only when somebody says so.
type SourceFunc func() (*fleet.Inventory, error)

// Read calls the function.
func (f SourceFunc) Read(context.Context, time.Time) (*fleet.Inventory, error) { return f() }

// Changed returns false.
func (SourceFunc) Changed(time.Time) bool { return false }

// Publishing makes an inventory the one in force for all nodes.
type Publishing interface {
	Publish(ctx context.Context, version string, hosts []fleet.Host, limits []fleet.Limit) error
	Inventory(ctx context.Context) (hub.Published, error)
}

// Counting counts how many hosts of an inventory each zone has.
type Counting interface {
	HostsOf(ctx context.Context, version string, zones []string) (map[string]int, error)
}

// Moving knows which hosts come to another zone while they have work in the one before; next has
// the zone of each host, and version is the inventory before.
type Moving interface {
	Movers(ctx context.Context, version string, next map[string]string) ([]read.Mover, error)
}

// Meters count what became of inventories that were read.
type Meters interface {
	Inventory(result string)
}

// Needs has all that a Store works with.
type Needs struct {
	Source     Source // nil: no inventory is configured
	Publishing Publishing
	Counting   Counting
	Moving     Moving // nil: hosts move as they like
	Meters     Meters
	Log        hclog.Logger
	Now        func() time.Time

	// Before is told of another inventory before it is published; nil: nobody is. Its error keeps the
	// earlier one in force.
	Before func(ctx context.Context, version string, hosts int) error
}

// Store keeps the inventory that submits are resolved with. Its methods may be called at the same
// time.
type Store struct {
	needs   Needs
	current atomic.Pointer[Stock]

	reading chan struct{} // has an element during a reload: one at a time, which may take long
	told    string        // version that Before was told of last; a reload that fails is repeated

	mu        sync.Mutex // guards what follows
	source    *patient   // nil: none is configured
	refused   string     // why the last reload did not come into force
	unheard   bool       // it was right, but Redis did not take it
	stays     string     // which hosts stay in the zone before; empty: none
	again     time.Time  // when these are looked at again
	config    string     // why the last configuration did not
	elsewhere string     // what another server has published instead
}

// NewStore returns a Store that has read nothing yet.
func NewStore(n Needs) *Store {
	return &Store{needs: n, source: newPatient(n.Source), reading: make(chan struct{}, 1)}
}

// Now returns the inventory in force; nil: there is none.
func (s *Store) Now() *Stock { return s.current.Load() }

// Hosts returns the inventory in force as its sources have it; nil: there is none.
func (s *Store) Hosts() *fleet.Inventory {
	if now := s.Now(); now != nil {
		return now.Inventory
	}
	return nil
}

// ZoneOf returns the zone of a host in the inventory in force; empty: it has no such host.
func (s *Store) ZoneOf(host string) string {
	now := s.Now()
	if now == nil {
		return ""
	}
	h, _ := now.Host(host)
	return h.Zone
}

// Get returns the inventory in force, or ErrNone.
func (s *Store) Get() (*Stock, error) {
	if now := s.Now(); now != nil {
		return now, nil
	}
	return nil, ErrNone
}

// Use makes a Store read from another source, and reads it at once. nil means that none is
// configured: that is a mistake unless there was none before.
func (s *Store) Use(ctx context.Context, source Source) error {
	if source == nil && s.Now() != nil {
		source = SourceFunc(func() (*fleet.Inventory, error) { return nil, errEmptied })
	}
	s.mu.Lock()
	s.source = newPatient(source)
	s.mu.Unlock()
	return s.Reload(ctx)
}

// Refuse notes why a new configuration did not come into force, or with nil that
// it did; Complaint repeats it.
func (s *Store) Refuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = ""
	if err != nil {
		s.config = err.Error()
	}
}

// Reload reads the inventory anew, publishes it and uses it from now on. If that fails, the
// earlier one stays in force, and Complaint says why.
func (s *Store) Reload(ctx context.Context) error {
	select {
	case s.reading <- struct{}{}:
		defer func() { <-s.reading }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	source := s.source
	s.mu.Unlock()
	if source == nil {
		return nil
	}
	inv, err := source.Read(ctx, s.needs.Now())
	unheard, stays := false, ""
	if err == nil && inv != nil {
		stays, err = s.publish(ctx, inv)
		unheard = err != nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.unheard = "", unheard
	if stays != "" && stays != s.stays {
		s.needs.Log.Warn("inventory", "warning", stays)
	}
	s.stays, s.again = stays, s.needs.Now().Add(staysEvery)
	if err != nil {
		s.refused = err.Error()
		s.needs.Meters.Inventory("refused")
		return ofInventory(err)
	}
	s.elsewhere = ""
	return nil
}

// ofInventory says that an error concerns the inventory, unless the error does so itself: errors
// of unreadable files do, and mistakes in files begin with their place.
func ofInventory(err error) error {
	if text := err.Error(); strings.HasPrefix(text, "inventory: ") ||
		strings.HasPrefix(text, "inventory ") {
		return err
	}
	return fmt.Errorf("inventory: %w", err)
}

// publish makes an inventory the one in force, and logs what is different in it. It says which
// hosts stay in the zone before.
func (s *Store) publish(ctx context.Context, inv *fleet.Inventory) (stays string, err error) {
	before := s.Now()
	if before != nil && before.Inventory == inv {
		return "", nil
	}
	inv, stays, err = s.staying(ctx, inv)
	if err != nil {
		return "", err
	}
	next := &Stock{inv, inv.Version()}
	same := before != nil && before.Version == next.Version
	if same && stays != "" {
		return stays, nil // nothing has changed since the last look
	}
	if err := s.tell(ctx, before, next); err != nil {
		return "", err
	}
	err = s.needs.Publishing.Publish(ctx, next.Version, inv.Hosts(), inv.Limits())
	if err != nil {
		return "", err
	}
	s.current.Store(next)
	if same {
		return stays, nil
	}
	s.needs.Meters.Inventory("published")
	s.logChange(before, next)
	return stays, nil
}

// tell says before an inventory is published that it will be, unless it is the one that Redis has.
func (s *Store) tell(ctx context.Context, before, next *Stock) error {
	if s.needs.Before == nil || s.told == next.Version ||
		before != nil && before.Version == next.Version {
		return nil
	}
	if before == nil {
		published, err := s.needs.Publishing.Inventory(ctx)
		if err != nil || published.Version == next.Version {
			return err
		}
	}
	if err := s.needs.Before(ctx, next.Version, next.Len()); err != nil {
		return err
	}
	s.told = next.Version
	return nil
}

// warningsLogged bounds the lines about one inventory.
const warningsLogged = 10

func (s *Store) logChange(before, next *Stock) {
	log := s.needs.Log
	if before == nil {
		log.Info("inventory published", "version", next.Version, "hosts", next.Len())
	} else {
		log.Info("inventory changed", "version", next.Version, "hosts", next.Len(),
			"changes", fleet.Diff(before.Inventory, next.Inventory).String())
	}
	warnings := next.Warnings()
	for _, w := range warnings[:min(len(warnings), warningsLogged)] {
		log.Warn("inventory", "warning", w)
	}
	if more := len(warnings) - warningsLogged; more > 0 {
		log.Warn("inventory", "further warnings", more, "list", "muster hosts check")
	}
	if without := next.WithoutKey(); len(without) > 0 {
		log.Warn("hosts have no host key, so their jobs fail", "number", len(without),
			"hosts", wording.Clip(fleet.Fold(without)), "help", "muster hosts enroll")
	}
}

// A Store asks this often whether the inventory has changed, so that
// a change is in force within two seconds.
const followEvery = 500 * time.Millisecond

// Follow reads the inventory again whenever it has changed, until ctx is done. It logs a
// mistake when it comes and when it goes.
func (s *Store) Follow(ctx context.Context) {
	ticks := time.NewTicker(followEvery)
	defer ticks.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		s.mu.Lock()
		source, unheard := s.source, s.unheard || s.stays != "" && s.needs.Now().After(s.again)
		s.mu.Unlock()
		if source == nil || !unheard && !source.Changed(ctx, s.needs.Now()) {
			continue
		}
		wrong := ""
		if err := s.Reload(ctx); err != nil {
			wrong = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return
		case wrong != "" && wrong != said:
			s.needs.Log.Error("the changed inventory is refused, the earlier one stays", "error", wrong)
		case wrong == "" && said != "":
			s.needs.Log.Info("the inventory is right again")
		}
		said = wrong
	}
}

// Complaint says what is wrong with the configuration and the inventory that were read last;
// empty: nothing.
func (s *Store) Complaint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var wrong []string
	if s.config != "" {
		wrong = append(wrong, "the new configuration was refused, the earlier one stays in force: "+
			s.config)
	}
	if s.refused != "" {
		wrong = append(wrong, "the new inventory was refused, the earlier one stays in force: "+
			s.refused)
	}
	if s.stays != "" {
		wrong = append(wrong, s.stays)
	}
	if s.source != nil {
		if text := s.source.slow(s.needs.Now()); text != "" {
			wrong = append(wrong, text)
		}
	}
	if s.elsewhere != "" {
		wrong = append(wrong, s.elsewhere)
	}
	return strings.Join(wrong, "; ")
}

// Refused reports whether the inventory that was read last did not come into force.
func (s *Store) Refused() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused != ""
}

// HasLeft reports whether a job has not ended and its host is in the inventory no more.
// The job keeps what its task was submitted with.
func (s *Store) HasLeft(j jobs.JobInfo) bool {
	now := s.Now()
	if now == nil || j.Outcome != "" {
		return false
	}
	_, there := now.Host(j.Host)
	return !there
}

// Address returns where a host is reached, host:port; empty: the inventory does not have it.
func (s *Store) Address(host string) string {
	if st := s.Now(); st != nil {
		if h, ok := st.Host(host); ok {
			return net.JoinHostPort(h.Address, strconv.Itoa(h.Port))
		}
	}
	return ""
}

// HasZone reports whether the inventory has hosts in a zone. Without an inventory it may have.
func (s *Store) HasZone(zone string) bool {
	now := s.Now()
	return now == nil || slices.Contains(now.Zones(), zone)
}

// Compare compares the inventory with the one that is published. A Redis that has forgotten it
// gets it again, or no worker would know a host. Another one comes from a server
// with other files, which a person has to look at: Complaint says so.
func (s *Store) Compare(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	mine := s.Now()
	if mine == nil {
		return nil
	}
	published, err := s.needs.Publishing.Inventory(ctx)
	if err != nil {
		return err
	}
	s.elsewhere = ""
	version := published.Version
	if version == mine.Version {
		lost, err := s.lostZones(ctx, mine)
		if err != nil {
			return err
		}
		if len(lost) > 0 {
			s.needs.Log.Warn("zones have lost the inventory: it is published again", "zones",
				strings.Join(lost, ","), "version", version)
			version = ""
		}
	}
	switch version {
	case mine.Version:
	case "":
		return s.needs.Publishing.Publish(ctx, mine.Version, mine.Hosts(), mine.Limits())
	default:
		s.elsewhere = otherInventory(published, mine.Version)
	}
	return nil
}

// lostZones returns the zones of which Redis has not all hosts, although the hub knows that the
// inventory is published: a cluster has lost the node of that zone, and not that of the hub.
func (s *Store) lostZones(ctx context.Context, mine *Stock) ([]string, error) {
	want := map[string]int{}
	for _, h := range mine.Hosts() {
		want[h.Zone]++
	}
	zones := slices.Sorted(maps.Keys(want))
	has, err := s.needs.Counting.HostsOf(ctx, mine.Version, zones)
	return slices.DeleteFunc(zones, func(zone string) bool {
		n, answers := has[zone]
		return !answers || n >= want[zone]
	}), err
}

func otherInventory(p hub.Published, mine string) string {
	return fmt.Sprintf("another server has published inventory %s with %d hosts, this one works "+
		"with %s: give both the same files and reload", p.Version, p.Hosts, mine)
}

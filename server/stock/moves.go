package stock

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster/jobs/queue/read"
)

// movesEvery is the time after which an inventory is tried again whose hosts were at work.
const movesEvery = 5 * time.Second

// movesShown bounds the hosts that an error names.
const movesShown = 5

// A MovesError is the error of an inventory that has hosts in another zone than the one in which
// they have work. Two zones do not see each other's locks, so it comes into force later.
type MovesError struct{ Hosts []read.Mover }

func (e *MovesError) Error() string {
	var list []string
	for _, m := range e.Hosts[:min(len(e.Hosts), movesShown)] {
		list = append(list, fmt.Sprintf("%s of zone %s (job %s)", m.Host, m.From, m.Job))
	}
	more := ""
	if n := len(e.Hosts) - len(list); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("hosts that come to another zone have work in the one before, and two jobs "+
		"could be on them at once: %s%s; it comes into force when these jobs have ended: wait, or "+
		"muster cancel", strings.Join(list, ", "), more)
}

// allMayMove returns a *MovesError if hosts come to another zone while they have work.
func (s *Store) allMayMove(ctx context.Context, next *Stock) error {
	if s.needs.Moving == nil {
		return nil
	}
	published, err := s.needs.Publishing.Inventory(ctx)
	if err != nil || published.Version == next.Version {
		return err
	}
	zones := map[string]string{}
	for _, h := range next.Hosts() {
		zones[h.Name] = h.Zone
	}
	movers, err := s.needs.Moving.Movers(ctx, published.Version, zones)
	if err == nil && len(movers) > 0 {
		err = &MovesError{movers}
	}
	return err
}

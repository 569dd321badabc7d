package apart

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/internal/proc"
	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

// seatField is the field of a zone with its seat: a random text, which the hub has, too. Two
// processes with two lists of servers would work on two queues of one zone, each with locks of its
// own; by the seat they see that before the first call.
const seatField = "seat"

// ErrSeat is wrapped by the errors about a zone that this process has on another server than the
// others do.
var ErrSeat = errors.New("this process has another redis.zones than the others")

const (
	// seatFor is the time for which a process relies on what it saw.
	seatFor = 5 * time.Minute

	// A process that knew a zone waits so long for a look at it, and looks again after seatAgain if
	// there was no answer: a zone does not need the hub for its work.
	seatLook  = time.Second
	seatAgain = 30 * time.Second
)

// errNobodyKnows is wrapped where a server may be the right one, and no process knows the seat.
var errNobodyKnows = errors.New("it is not known where others have this zone")

// Seats checks that this process has each zone on the server on which the others have it. It is
// safe for concurrent use.
type Seats struct {
	Zones Zones // with a server of their own
	Node  bool  // whether this is a node: it compares, and writes nothing
	// Trust returns why the server of a zone is not safe for a queue. It is called before the first
	// use of each.
	Trust func(ctx context.Context, own *redis.Client) error
	// At returns the client of the server that has a zone; nil: nothing is checked.
	At func(ctx context.Context, zone string) (c *redis.Client, addr string, err error)

	mu   sync.Mutex
	seen map[string]seen // by zone; guarded by mu
}

// seen says by which seat a process knew a zone, and until when, on the boot clock, it relies on
// that.
type seen struct {
	seat  string
	until time.Duration
}

// Doubt makes the next Take of a zone look again: its server has another queue than before.
func (s *Seats) Doubt(zone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, known := s.seen[zone]; known {
		s.seen[zone] = seen{seat: was.seat}
	}
}

// Take returns an *AwayError if the others have a zone on another server than own, and an error if
// it cannot find that out and never has.
func (s *Seats) Take(ctx context.Context, zone string, own *redis.Client) error {
	s.mu.Lock()
	was, known := s.seen[zone]
	s.mu.Unlock()
	if s.At == nil || known && proc.Boot() < was.until {
		return nil
	}
	if known {
		bounded, cancel := context.WithTimeout(ctx, seatLook)
		defer cancel()
		ctx = bounded
	}
	v, hub := view{}, (*redis.Client)(nil)
	hub, _, err := s.At(ctx, keys.HubZone)
	if err == nil {
		v, err = s.look(ctx, hub, own, zone)
	}
	if err == nil && v.own && !known {
		err = s.Trust(ctx, own)
	}
	var m move
	var wrong error
	if v.knew = was.seat; err == nil {
		m, wrong = v.judge()
	}
	if err == nil && wrong == nil {
		v.seat, wrong, err = m.carryOut(ctx, hub, own, zone, v)
	}
	switch {
	case err != nil && known:
		s.note(zone, was.seat, seatAgain) // it says nothing against what this process saw before
	case err != nil:
		return fmt.Errorf("where the queue of zone %s is: %w", zone, err)
	case wrong != nil:
		return &hooks.AwayError{Server: "zone " + zone, Err: wrong}
	default:
		s.note(zone, v.seat, seatFor)
	}
	return nil
}

// note keeps what was seen of a zone for some time.
func (s *Seats) note(zone, seat string, lasts time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]seen{}
	}
	s.seen[zone] = seen{seat, proc.Boot() + lasts}
}

// All returns an error that wraps ErrSeat if the others have zones of this process on other
// servers: for a node those that it serves, for others all. A server that does not answer is no
// mistake.
func (s *Seats) All(ctx context.Context, zones []string) (wrong error) {
	if s.At == nil {
		return nil
	}
	if !s.Node {
		hub, _, err := s.At(ctx, keys.HubZone)
		if err != nil {
			return err
		}
		hubs, err := hub.HGetAll(ctx, keys.Hub("apart", "")).Result()
		if err != nil {
			return err
		}
		zones = slices.AppendSeq(slices.Sorted(maps.Keys(hubs)), maps.Keys(s.Zones))
	}
	for _, zone := range zones {
		own, _, err := s.At(ctx, zone)
		if err == nil {
			err = s.Take(ctx, zone, own)
		}
		if errors.Is(err, ErrSeat) {
			wrong = errors.Join(wrong, err)
		}
	}
	return wrong
}

// look reads what the hub and the server of a zone say about it.
func (s *Seats) look(ctx context.Context, hub, own *redis.Client, zone string) (v view, err error) {
	v.own, v.node = s.Zones[zone] != "", s.Node
	read := func(to *string, c *redis.Client, key, field string) {
		text, e := c.HGet(ctx, key, field).Result()
		// A user with the rules of an earlier version may not look, and has no list either.
		unallowed := e != nil && !v.own && strings.HasPrefix(e.Error(), "NOPERM")
		if e != nil && !errors.Is(e, redis.Nil) && !unallowed {
			err = errors.Join(err, e)
		}
		*to = text
	}
	read(&v.hub, hub, keys.Hub("apart", ""), zone)
	if !v.own || err != nil {
		return v, err
	}
	var hubs string
	there, err := own.HMGet(ctx, keys.Zone(zone, "zone", ""), seatField, "run").Result()
	if err != nil {
		return v, err
	}
	v.seat, _ = there[0].(string)
	if v.hub == "" && v.seat == "" && !s.Node {
		read(&hubs, hub, keys.Zone(zone, "zone", ""), "run")
	}
	v.used, v.atHub = there[1] != nil, hubs != ""
	return v, err
}

// A view is what a process sees of a zone.
type view struct {
	node bool // it writes nothing
	own  bool // by its list, the zone has a server of its own

	hub   string // the seat of the zone in the hub; empty: the zone is on the server of the hub
	seat  string // the seat on the zone's own server
	knew  string // the seat by which this process knew the zone
	used  bool   // whether the zone's own server has a queue of the zone …
	atHub bool   // … and whether the server of the hub has one
}

// A move says where a seat is to be written.
type move struct{ toHub, toZone bool }

const sameList = "want the same list everywhere (OPERATING, A Redis for a zone)"

// judge decides what to do, or says why this process must not work on the zone. A seat that one of
// the two servers has lost is written again by a process that knew it.
func (v view) judge() (move, error) {
	no := func(kind error, why string) (move, error) { return move{}, fmt.Errorf("%w: %s", kind, why) }
	switch knew := v.knew != ""; {
	case !v.own && v.hub != "":
		return no(ErrSeat, "others have it on a Redis of its own, and this process on that of the hub: "+
			sameList)
	case !v.own, v.hub != "" && v.hub == v.seat:
		return move{}, nil
	case v.hub != "" && v.seat == "" && v.knew == v.hub:
		return move{toZone: !v.node}, nil
	case v.hub != "" && v.seat == "" && !v.used:
		return no(errNobodyKnows, "its Redis is empty: it was emptied, or it is another one than the "+
			"others have (OPERATING, A Redis for a zone)")
	case v.hub != "":
		return no(ErrSeat, "the Redis of it is not the one on which others have it: "+sameList)
	case v.atHub && !knew:
		return no(ErrSeat, "its queue is still on the Redis of the hub: move it, or take the zone out "+
			"of redis.zones (OPERATING, A Redis for a zone)")
	case v.node && !knew:
		return no(errNobodyKnows, "no server has said yet that it has a Redis of its own: start a "+
			"server with the same redis.zones")
	case v.seat != "" && v.seat != v.knew && v.used:
		return no(errNobodyKnows, "its Redis has the queue of another hub, or the hub has forgotten it "+
			"(OPERATING, A Redis for a zone)")
	}
	return move{toHub: !v.node, toZone: !v.node}, nil
}

// carryOut writes a seat where it is missing. The first of several processes wins.
func (m move) carryOut(ctx context.Context, hub, own *redis.Client, zone string, v view) (
	seat string, wrong, err error) {
	if !m.toHub && !m.toZone {
		return cmp.Or(v.hub, v.knew), nil, nil
	}
	seat = cmp.Or(v.hub, v.seat, v.knew, rand.Text())
	key := keys.Zone(zone, "zone", "")
	if _, err = own.HSetNX(ctx, key, seatField, seat).Result(); err != nil {
		return "", nil, err
	}
	if seat, err = own.HGet(ctx, key, seatField).Result(); err != nil {
		return "", nil, err
	}
	if _, err = hub.HSetNX(ctx, keys.Hub("apart", ""), zone, seat).Result(); err != nil {
		return "", nil, err
	}
	v.knew, v.seat = "", seat
	if v.hub, err = hub.HGet(ctx, keys.Hub("apart", ""), zone).Result(); err == nil {
		_, wrong = v.judge()
	}
	return seat, wrong, err
}

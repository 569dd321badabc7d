package apart

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"muster/jobs/queue/hooks"
	"muster/jobs/queue/keys"
)

func TestWhoMayWorkOnAZone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		see  view
		want move
		why  string
	}{
		"a zone of the hub":              {view{}, move{}, ""},
		"the list lacks the zone":        {view{hub: "a"}, move{}, "on a Redis of its own"},
		"the same list":                  {view{own: true, hub: "a", seat: "a", used: true}, move{}, ""},
		"a new zone":                     {view{own: true}, move{true, true}, ""},
		"a new zone, seen by a node":     {view{own: true, node: true}, move{}, "no server has said yet"},
		"a zone with work at the hub":    {view{own: true, atHub: true}, move{}, "still on the Redis of the hub"},
		"another server":                 {view{own: true, hub: "a", seat: "b", used: true}, move{}, "not the one"},
		"a server that nobody uses":      {view{own: true, hub: "a"}, move{}, "its Redis is empty"},
		"it was emptied":                 {view{own: true, hub: "a", knew: "a"}, move{toZone: true}, ""},
		"it was emptied, seen by a node": {view{own: true, hub: "a", knew: "a", node: true}, move{}, ""},
		"the hub was emptied":            {view{own: true, seat: "a", knew: "a", used: true}, move{true, true}, ""},
		"the queue of another hub":       {view{own: true, seat: "a", used: true}, move{}, "another hub"},
		"a server ended while it wrote":  {view{own: true, seat: "a"}, move{true, true}, ""},
		"both were emptied":              {view{own: true, knew: "a"}, move{true, true}, ""},
		"a list that was corrected":      {view{own: true, hub: "b", seat: "b", knew: "a", used: true}, move{}, ""},
	} {
		got, why := c.see.judge()
		if got != c.want || (c.why == "") != (why == nil) ||
			why != nil && !strings.Contains(why.Error(), c.why) {
			t.Errorf("%s: %+v, %v; want %+v, %q", name, got, why, c.want, c.why)
		}
	}
}

// process is a muster with a list of its own.
type process struct {
	*Seats
	server string // on which it has the zone
	works  bool   // since the last loss of anything
}

// Processes with different lists, whose servers are emptied, never work on one zone on two servers.
// Only the hub keeps its data: who has lost both has no way to know.
func TestAZoneHasOneQueueWhateverTheLists(t *testing.T) {
	t.Parallel()
	const zone = "zrh"
	clients, servers := map[string]*redis.Client{}, map[string]*miniredis.Miniredis{}
	for _, name := range []string{"hub", "own", "other"} {
		servers[name] = miniredis.RunT(t)
		clients[name] = redis.NewClient(&redis.Options{Addr: servers[name].Addr()})
		t.Cleanup(func() { clients[name].Close() })
	}
	start := func(server string, node bool) *process {
		s := &Seats{Node: node, Trust: func(context.Context, *redis.Client) error { return nil }}
		s.At = func(_ context.Context, of string) (*redis.Client, string, error) {
			if of == keys.HubZone {
				return clients["hub"], "", nil
			}
			return clients[server], "", nil
		}
		if server != "hub" {
			s.Zones = Zones{zone: "redis://" + server}
		}
		return &process{Seats: s, server: server}
	}
	rapid.Check(t, func(r *rapid.T) {
		for _, s := range servers {
			s.FlushAll()
		}
		server := rapid.SampledFrom([]string{"hub", "own", "other"})
		var all []*process
		r.Repeat(map[string]func(*rapid.T){
			"start": func(r *rapid.T) {
				all = append(all, start(server.Draw(r, "server"), rapid.Bool().Draw(r, "node")))
			},
			"empty": func(r *rapid.T) {
				name := rapid.SampledFrom([]string{"own", "other"}).Draw(r, "server")
				servers[name].FlushAll()
				for _, p := range all {
					if p.server == name {
						p.Doubt(zone) // its next call finds another epoch
					}
				}
			},
			"take": func(r *rapid.T) {
				if len(all) == 0 {
					return
				}
				p := rapid.SampledFrom(all).Draw(r, "process")
				p.Doubt(zone) // time passes
				err := p.Take(t.Context(), zone, clients[p.server])
				if p.works = err == nil; !p.works && !errors.As(err, new(*hooks.AwayError)) {
					r.Fatal(err)
				}
				if !p.works {
					return
				}
				servers[p.server].HSet(keys.Zone(zone, "zone", ""), "run", "r")
				for _, other := range all {
					if other.works && other.server != p.server {
						r.Fatalf("one works on %s, another on %s", p.server, other.server)
					}
				}
			},
		})
	})
}

// A process relies on what it saw, also while the hub is away; after its time it looks again.
func TestASeatIsReliedOnForATime(t *testing.T) {
	t.Parallel()
	hub, own := miniredis.RunT(t), miniredis.RunT(t)
	client := func(m *miniredis.Miniredis) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1, DialTimeout: time.Second})
		t.Cleanup(func() { c.Close() })
		return c
	}
	hubs, owns := client(hub), client(own)
	trusted := 0
	s := &Seats{Zones: Zones{"zrh": "redis://own"},
		Trust: func(context.Context, *redis.Client) error { trusted++; return nil },
		At:    func(context.Context, string) (*redis.Client, string, error) { return hubs, "", nil }}
	take := func() error { return s.Take(t.Context(), "zrh", owns) }
	hub.SetError("it hangs")
	if err := take(); err == nil || errors.Is(err, ErrSeat) {
		t.Fatalf("without an answer of the hub: %v", err)
	}
	hub.SetError("")
	if err := take(); err != nil || trusted != 1 {
		t.Fatalf("%v, trusted %d times", err, trusted)
	}
	seat := hub.HGet(keys.Hub("apart", ""), "zrh")
	if got := own.HGet(keys.Zone("zrh", "zone", ""), seatField); got != seat || seat == "" {
		t.Fatalf("seat %q in the hub, %q there", seat, got)
	}
	hub.HSet(keys.Hub("apart", ""), "zrh", "another")
	if err := take(); err != nil {
		t.Fatalf("within its time: %v", err)
	}
	s.Doubt("zrh")
	if err := take(); !errors.Is(err, ErrSeat) {
		t.Fatalf("another queue: %v", err)
	}
	hub.HSet(keys.Hub("apart", ""), "zrh", seat)
	if err := take(); err != nil {
		t.Fatal(err)
	}
	s.Doubt("zrh")
	hub.SetError("it hangs")
	if err := take(); err != nil || trusted != 1 {
		t.Fatalf("while the hub is away: %v, trusted %d times", err, trusted)
	}
}

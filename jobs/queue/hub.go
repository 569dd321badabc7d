package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/fleet"
	"muster/jobs"
)

// beatTTL is how long a node counts as alive after a beat.
const beatTTL = 15 * time.Second

// inventoryKeep is how long a version stays that was replaced: tasks have pinned it.
const inventoryKeep = taskKeep

// Beat tells that a node is alive; every 5 s. One Redis call, and once a minute two more:
// the clocks are compared, and the index of nodes is written; that also when Redis did not
// know the node any more, as after FLUSHALL.
func (q *Queue) Beat(ctx context.Context, n jobs.Node) error {
	due := q.indexDue()
	skew, err := q.skew(ctx, due)
	if err != nil {
		return err
	}
	n.Clock.Skew = skew.Seconds()
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	key, set := hubKey("node:", n.ID), redis.SetArgs{TTL: beatTTL, Get: true}
	err = q.rdb.SetArgs(ctx, key, text, set).Err()
	if err != nil && strings.HasPrefix(err.Error(), "OOM") {
		// What it said last stays: at maxmemory Redis takes nothing new, but a node that
		// works is not gone.
		err = errors.Join(err, q.rdb.PExpire(ctx, key, beatTTL).Err())
	}
	forgotten := errors.Is(err, redis.Nil)
	if err != nil && !forgotten {
		return q.say("beat", err)
	}
	if !due && !forgotten {
		return nil
	}
	err = q.rdb.ZAdd(ctx, hubKey("nodes", ""),
		redis.Z{Score: float64(n.Seen.UnixMicro()), Member: n.ID}).Err()
	q.indexed(err)
	return q.say("beat", err)
}

// skew is by how much the clock of this machine is ahead of that of Redis, as it was found
// last, or anew.
func (q *Queue) skew(ctx context.Context, anew bool) (time.Duration, error) {
	if !anew {
		q.mu.Lock()
		defer q.mu.Unlock()
		return q.ahead, nil
	}
	before := time.Now()
	now, err := q.now(ctx, HubZone)
	if err != nil {
		return 0, err
	}
	ahead := middle(before).Sub(now)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ahead = ahead
	return ahead, nil
}

// middle is between an instant and now: something that was read meanwhile is told to have
// been read then.
func middle(before time.Time) time.Time { return before.Add(time.Since(before) / 2) }

// indexEvery is how many beats pass until the index of nodes is written again,
// because an idle node must cost next to nothing.
const indexEvery = 12

func (q *Queue) indexDue() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.beats--
	return q.beats < 0
}

func (q *Queue) indexed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err == nil {
		q.beats = indexEvery
	}
}

// Gone tells that a node ended in order.
func (q *Queue) Gone(ctx context.Context, node string) error {
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, hubKey("node:", node))
		p.ZRem(ctx, hubKey("nodes", ""), node)
		return nil
	})
	return q.say("beat", err)
}

// NodeGone is the state of a node that was not heard of for 15 s.
const NodeGone = jobs.NodeGone

// Nodes lists the nodes by id. One that has not beaten for 15 s is NodeGone,
// with the last minute in which it was seen.
func (q *Queue) Nodes(ctx context.Context) ([]jobs.Node, error) {
	ids, err := q.rdb.ZRangeWithScores(ctx, hubKey("nodes", ""), 0, -1).Result()
	if err != nil || len(ids) == 0 {
		return nil, q.say("nodes", err)
	}
	cmds := make([]*redis.StringCmd, len(ids))
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, z := range ids {
			cmds[i] = p.Get(ctx, hubKey("node:", fmt.Sprint(z.Member)))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, q.say("nodes", err)
	}
	out := make([]jobs.Node, len(ids))
	for i, z := range ids {
		text, err := cmds[i].Bytes()
		if err != nil || json.Unmarshal(text, &out[i]) != nil {
			out[i] = jobs.Node{ID: fmt.Sprint(z.Member), State: NodeGone,
				Seen: jobs.TimeOf(jobs.Micros(z.Score))}
		}
	}
	slices.SortFunc(out, func(a, b jobs.Node) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// Published says which inventory is in force.
type Published struct {
	Version string      `json:"version"`
	Hosts   int         `json:"hosts"`
	At      jobs.Micros `json:"at"`
}

// Publish makes an inventory the one in force. Each zone gets its hosts only. A
// version that is in force already is left as it is; one that is replaced stays
// for 70 days, as long as a task that pinned it. A limit that is raised, or no more
// there, lets those who wait for it come; a new one holds for these tasks too.
func (q *Queue) Publish(ctx context.Context, version string, hosts []fleet.Host,
	limits []fleet.Limit) error {
	before, err := q.Inventory(ctx)
	if err != nil {
		return err
	}
	zones, err := byZone(hosts, limits)
	if err != nil {
		return err
	}
	for zone, part := range zones {
		if err := q.publishZone(ctx, zone, version, part); err != nil {
			return q.say("publish inventory", err)
		}
	}
	if err := q.publishLimits(ctx, limits); err != nil {
		return err
	}
	for zone := range zones {
		if err := q.amend(ctx, zone, version); err != nil {
			return err
		}
	}
	now, err := q.now(ctx, HubZone)
	if err != nil {
		return err
	}
	err = q.rdb.HSet(ctx, hubKey("inventory", ""), "version", version, "hosts", len(hosts),
		"at", jobs.MicrosOf(now).String()).Err()
	if err != nil || before.Version == version || before.Version == "" {
		return q.say("publish inventory", err)
	}
	return q.retire(ctx, before.Version)
}

// zonePart is what a zone gets of an inventory: names and values in turns.
type zonePart struct{ hosts, traits []any }

func byZone(hosts []fleet.Host, limits []fleet.Limit) (map[string]*zonePart, error) {
	zones := map[string]*zonePart{}
	part := func(zone string) *zonePart {
		if zones[zone] == nil {
			zones[zone] = &zonePart{}
		}
		return zones[zone]
	}
	for _, h := range hosts {
		text, err := json.Marshal(h)
		if err != nil {
			return nil, err
		}
		p := part(h.Zone)
		p.hosts = append(p.hosts, h.Name, text)
		if t := traits(h, limits); t != noTraits {
			p.traits = append(p.traits, h.Name, t)
		}
	}
	for _, l := range limits {
		part(l.Zone)
	}
	if zones[HubZone] != nil {
		return nil, fmt.Errorf("zone %q: the name is taken by muster itself", HubZone)
	}
	return zones, nil
}

const noTraits = "- -"

// traits is what the scripts must know of a host: its customer, its group and
// the limits that its jobs count against.
func traits(h fleet.Host, limits []fleet.Limit) string {
	words := append([]string{cmp.Or(h.Customer, "-"), cmp.Or(h.Group, "-")},
		fleet.Needs(h, limits)...)
	return strings.Join(words, " ")
}

func (q *Queue) publishZone(ctx context.Context, zone, version string, part *zonePart) error {
	for kind, pairs := range map[string][]any{"hosts:": part.hosts, "traits:": part.traits} {
		key := zoneKey(zone, kind, version)
		for chunk := range slices.Chunk(pairs, 2*chunkMax) {
			if err := q.rdb.HSet(ctx, key, chunk...).Err(); err != nil {
				return err
			}
		}
		if err := q.rdb.Persist(ctx, key).Err(); err != nil {
			return err
		}
	}
	if err := q.rdb.SAdd(ctx, hubKey("zones", ""), zone).Err(); err != nil {
		return err
	}
	return q.Enter(ctx, zone)
}

// publishLimits makes the limits of every zone those of the inventory.
func (q *Queue) publishLimits(ctx context.Context, limits []fleet.Limit) error {
	zones, err := q.Zones(ctx)
	if err != nil {
		return err
	}
	want := map[string]map[string]string{}
	for _, zone := range zones {
		want[zone] = map[string]string{}
	}
	for _, l := range limits {
		want[l.Zone][l.Name] = strconv.Itoa(l.Max)
	}
	for _, zone := range zones {
		is, err := q.rdb.HGetAll(ctx, zoneKey(zone, "limits", "")).Result()
		if err != nil {
			return q.say("publish limits", err)
		}
		for name := range is {
			if _, ok := want[zone][name]; !ok {
				want[zone][name] = ""
			}
		}
		for name, most := range want[zone] {
			if is[name] == most {
				continue
			}
			if _, err := q.control(ctx, zone, turn{verb: "limit", object: name, number: most}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (q *Queue) retire(ctx context.Context, version string) error {
	zones, err := q.Zones(ctx)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		for _, kind := range []string{"hosts:", "traits:"} {
			key := zoneKey(zone, kind, version)
			if err := q.rdb.Expire(ctx, key, inventoryKeep).Err(); err != nil {
				return q.say("publish inventory", err)
			}
		}
	}
	return nil
}

// now is the time of the server that has a zone: in a cluster each has its own.
func (q *Queue) now(ctx context.Context, zone string) (time.Time, error) {
	c, _, err := q.at(ctx, zone)
	if err != nil {
		return time.Time{}, err
	}
	now, err := c.Time(ctx).Result()
	return now, q.say("time", err)
}

// Inventory is the inventory in force; Version is empty if there is none.
func (q *Queue) Inventory(ctx context.Context) (Published, error) {
	h, err := q.rdb.HGetAll(ctx, hubKey("inventory", "")).Result()
	if err != nil {
		return Published{}, q.say("inventory", err)
	}
	at, _ := jobs.ParseMicros(h["at"])
	n, _ := jobs.ParseMicros(h["hosts"])
	return Published{Version: h["version"], Hosts: int(n), At: at}, nil
}

// Zones lists the zones that were ever used.
func (q *Queue) Zones(ctx context.Context) ([]string, error) {
	zones, err := q.rdb.SMembers(ctx, hubKey("zones", "")).Result()
	slices.Sort(zones)
	return zones, q.say("zones", err)
}

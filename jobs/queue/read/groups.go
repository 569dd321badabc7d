package read

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Groups reads redundancy groups and limits, and the jobs that wait for them.
type Groups struct{ c *queue.Conn }

// NewGroups returns the groups behind a connection.
func NewGroups(c *queue.Conn) *Groups { return &Groups{c} }

// holdersMax bounds the holders of a limit that are listed.
const holdersMax = 100

// semaphores reads the groups and limits of a zone that are held, frozen or defined.
func (q *Groups) semaphores(ctx context.Context, zone string) ([]codec.Semaphore, map[string]int,
	error) {
	var names *redis.StringSliceCmd
	var limits *redis.MapStringStringCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		names = p.SMembers(ctx, keys.Zone(zone, "sems", ""))
		limits = p.HGetAll(ctx, keys.Zone(zone, "limits", ""))
		return nil
	})
	if err != nil {
		return nil, nil, q.c.Say("semaphores", err)
	}
	most := map[string]int{}
	// The rule of a task applies to its own jobs only, and all of them may hold it.
	all := slices.DeleteFunc(names.Val(), func(name string) bool {
		return strings.HasPrefix(name, codec.RulePrefix)
	})
	for name, text := range limits.Val() {
		n, _ := jobs.ParseMicros(text)
		most[name] = int(n)
		all = append(all, name)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	holders := make([]*redis.MapStringStringCmd, len(all))
	tasks := make([]*redis.StringSliceCmd, len(all))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range all {
			holders[i] = p.HGetAll(ctx, keys.Zone(zone, "sem:", name))
			tasks[i] = p.ZRange(ctx, keys.Zone(zone, "wait:", name), 0, codec.ChunkMax)
		}
		return nil
	})
	if err != nil {
		return nil, nil, q.c.Say("semaphores", err)
	}
	out := make([]codec.Semaphore, len(all))
	for i, name := range all {
		waits, err := q.waiters(ctx, zone, name, tasks[i].Val())
		if err != nil {
			return nil, nil, err
		}
		out[i] = codec.Semaphore{Name: name, Holders: holders[i].Val(), Waits: waits}
	}
	return out, most, nil
}

// waiters counts the waiting jobs. A job of a task that has ended, by a cancel for instance, stays
// on the list until it would be woken.
func (q *Groups) waiters(ctx context.Context, zone, name string, tasks []string) (int, error) {
	if len(tasks) == 0 {
		return 0, nil
	}
	cards, states := make([]*redis.IntCmd, len(tasks)), make([]*redis.SliceCmd, len(tasks))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, task := range tasks {
			cards[i] = p.ZCard(ctx, keys.Zone(zone, "wait:", name+":"+task))
			states[i] = p.HMGet(ctx, keys.Zone(zone, "task:", task), "total", "ended")
		}
		return nil
	})
	n := 0
	for i, c := range cards {
		if v := states[i].Val(); len(v) == 2 && v[0] != nil && v[1] == nil {
			n += int(c.Val())
		}
	}
	return n, q.c.Say("semaphores", err)
}

// Groups lists the redundancy groups that are in use or frozen, by name.
func (q *Groups) Groups(ctx context.Context) ([]jobs.Group, error) {
	out := []jobs.Group{}
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		all, _, err := q.semaphores(ctx, zone)
		if err != nil && !queue.Away(err) {
			return nil, err
		}
		for _, s := range all {
			if name, ok := strings.CutPrefix(s.Name, codec.GroupPrefix); ok {
				out = append(out, codec.ReadGroup(zone, name, s))
			}
		}
	}
	slices.SortFunc(out, func(a, b jobs.Group) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Zone, b.Zone))
	})
	return out, nil
}

// Limits lists the limits that are defined, by name.
func (q *Groups) Limits(ctx context.Context) ([]jobs.Limit, error) {
	out := []jobs.Limit{}
	zones, err := q.c.Zones(ctx)
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		all, most, err := q.semaphores(ctx, zone)
		if err != nil && !queue.Away(err) {
			return nil, err
		}
		for _, s := range all {
			n, ok := most[s.Name]
			if !ok {
				continue
			}
			l := jobs.Limit{Name: s.Name, Zone: zone, Max: n, Used: len(s.Holders), Waits: s.Waits,
				Holders: []jobs.ID{}}
			for holder := range s.Holders {
				l.Holders = append(l.Holders, jobs.ID(holder))
			}
			slices.Sort(l.Holders)
			l.Holders = l.Holders[:min(len(l.Holders), holdersMax)]
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b jobs.Limit) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Zone, b.Zone))
	})
	return out, nil
}

// waitsFor returns the resource that a job waits for and another job has, or "" if none is known.
// Use it for single jobs only: it asks Redis about each resource.
func (q *Groups) waitsFor(ctx context.Context, zone string, id jobs.ID) (string, error) {
	h, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "task:", string(id.Task())), "inventory",
		"guard").Result()
	if err != nil {
		return "", q.c.Say("job", err)
	}
	version, _ := h[0].(string)
	guard, _ := h[1].(string)
	names := []string{}
	if guard != "" {
		traits, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "traits:", version), id.Host()).Result()
		if err == nil {
			names = needs(guard, traits)
		}
	}
	cmds := make([]*redis.FloatCmd, len(names))
	var host *redis.FloatCmd
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		host = p.ZScore(ctx, keys.Zone(zone, "wait:", "host/"+id.Host()), string(id))
		for i, name := range names {
			key := keys.Zone(zone, "wait:", name+":"+string(id.Task()))
			cmds[i] = p.ZScore(ctx, key, string(id))
		}
		return nil
	})
	if err != nil && err != redis.Nil {
		return "", q.c.Say("job", err)
	}
	for i, c := range cmds {
		if c.Err() == nil {
			return names[i], nil
		}
	}
	if host.Err() == nil {
		return "host/" + id.Host(), nil
	}
	return "", nil
}

// needs lists the resources of a job, as the function of the same name in exclude.lua does.
func needs(guard, traits string) []string {
	words := strings.Fields(traits)
	var out []string
	if len(words) > 1 && words[1] != "-" && guard[0] != '-' {
		out = append(out, codec.GroupPrefix+words[1])
	}
	if len(words) > 2 {
		out = append(out, words[2:]...)
	}
	return append(out, strings.Fields(guard[1:])...)
}

package queue

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// holdersMax bounds the holders of a limit that are listed.
const holdersMax = 100

// groupPrefix begins the name of a redundancy group's semaphore.
const groupPrefix = "group/"

// frozenField is the field of a semaphore that says why it is frozen; see exclude.lua.
const frozenField = "frozen"

// semaphore is what Redis knows of a group or limit.
type semaphore struct {
	name    string
	holders map[string]string // job to token; frozenField to why
	waits   int
}

// semaphores reads the groups and limits of a zone that are held, frozen or defined.
func (q *Queue) semaphores(ctx context.Context, zone string) ([]semaphore, map[string]int, error) {
	var names *redis.StringSliceCmd
	var limits *redis.MapStringStringCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		names = p.SMembers(ctx, zoneKey(zone, "sems", ""))
		limits = p.HGetAll(ctx, zoneKey(zone, "limits", ""))
		return nil
	})
	if err != nil {
		return nil, nil, q.say("semaphores", err)
	}
	most := map[string]int{}
	// The rule of a task is for its own jobs, and may be held by all of them.
	all := slices.DeleteFunc(names.Val(), func(name string) bool {
		return strings.HasPrefix(name, rulePrefix)
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
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range all {
			holders[i] = p.HGetAll(ctx, zoneKey(zone, "sem:", name))
			tasks[i] = p.ZRange(ctx, zoneKey(zone, "wait:", name), 0, chunkMax)
		}
		return nil
	})
	if err != nil {
		return nil, nil, q.say("semaphores", err)
	}
	out := make([]semaphore, len(all))
	for i, name := range all {
		waits, err := q.waiters(ctx, zone, name, tasks[i].Val())
		if err != nil {
			return nil, nil, err
		}
		out[i] = semaphore{name, holders[i].Val(), waits}
	}
	return out, most, nil
}

// waiters counts who waits. Those of a task that has ended, cancelled say, stay on the list
// until they would be woken.
func (q *Queue) waiters(ctx context.Context, zone, name string, tasks []string) (int, error) {
	if len(tasks) == 0 {
		return 0, nil
	}
	cards, states := make([]*redis.IntCmd, len(tasks)), make([]*redis.SliceCmd, len(tasks))
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, task := range tasks {
			cards[i] = p.ZCard(ctx, zoneKey(zone, "wait:", name+":"+task))
			states[i] = p.HMGet(ctx, zoneKey(zone, "task:", task), "total", "ended")
		}
		return nil
	})
	n := 0
	for i, c := range cards {
		if v := states[i].Val(); len(v) == 2 && v[0] != nil && v[1] == nil {
			n += int(c.Val())
		}
	}
	return n, q.say("semaphores", err)
}

// Groups lists the redundancy groups that are in use or frozen, by name.
func (q *Queue) Groups(ctx context.Context) ([]jobs.Group, error) {
	out := []jobs.Group{}
	zones, err := q.Zones(ctx)
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		all, _, err := q.semaphores(ctx, zone)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			if name, ok := strings.CutPrefix(s.name, groupPrefix); ok {
				out = append(out, readGroup(zone, name, s))
			}
		}
	}
	slices.SortFunc(out, func(a, b jobs.Group) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Zone, b.Zone))
	})
	return out, nil
}

func readGroup(zone, name string, s semaphore) jobs.Group {
	g := jobs.Group{Name: name, Zone: zone, Waits: s.waits}
	for holder, v := range s.holders {
		if holder == frozenField {
			g.Job, g.Since, g.Frozen = readFrozen(v)
			continue
		}
		g.Holder = jobs.ID(holder)
		if g.Frozen == "" {
			token, _ := jobs.ParseMicros(v)
			g.Since = jobs.TimeOf(token)
		}
	}
	return g
}

// readFrozen reads "job instant why".
func readFrozen(v string) (job jobs.ID, since jobs.Time, why string) {
	parts := strings.SplitN(v, " ", 3)
	if len(parts) < 3 {
		return "", jobs.Time{}, cmp.Or(v, "not known")
	}
	at, _ := jobs.ParseMicros(parts[1])
	return jobs.ID(parts[0]), jobs.TimeOf(at), cmp.Or(parts[2], "a job ended unknown")
}

// ClearGroup lets the members of a frozen group be touched again. note says who
// looked at them, and why it is well.
func (q *Queue) ClearGroup(ctx context.Context, group, note string) (jobs.Cleared, error) {
	out := jobs.Cleared{Group: group, Already: true}
	zones, err := q.Zones(ctx)
	if err != nil {
		return out, err
	}
	known := false
	for _, zone := range zones {
		v, err := q.rdb.HGetAll(ctx, zoneKey(zone, "sem:", groupPrefix+group)).Result()
		if err != nil {
			return out, q.say("clear", err)
		}
		if len(v) == 0 {
			continue
		}
		known = true
		g := readGroup(zone, group, semaphore{holders: v})
		out.Zone, out.Holder = zone, g.Holder
		if err := q.stampClear(ctx, zone, group); err != nil {
			return out, err // first: who is woken by the clear looks for it
		}
		if frozen, ok := v[frozenField]; ok {
			if out, err = q.thawGroup(ctx, out, frozen, note); err != nil {
				return out, err
			}
			if !out.Already {
				continue
			}
		}
		// It is in use and not frozen: the markers of earlier jobs were cleared all the same.
		err = q.Alert(ctx, zone, jobs.Alert{Event: "clear", Object: group,
			Detail: map[string]any{"note": note}})
		if err != nil {
			return out, err
		}
	}
	if !known {
		return out, fmt.Errorf("group %s is neither in use nor frozen: %w", group, ErrNotFound)
	}
	return out, nil
}

// thawGroup takes away the mark that was read, and no other: a copy of this call that
// comes late meets a group, maybe, that a job has frozen since, and nobody has looked at that.
func (q *Queue) thawGroup(ctx context.Context, out jobs.Cleared, frozen, note string) (
	jobs.Cleared, error) {
	_, since, _ := readFrozen(frozen)
	t := turn{verb: "clear", object: out.Group, note: note}
	if !since.IsZero() {
		t.number = jobs.MicrosOf(since.Time).String()
	}
	c, err := q.control(ctx, out.Zone, t)
	switch {
	case err != nil:
		return out, err
	case c.status == "other":
		job, _, why := readFrozen(c.before)
		return out, fmt.Errorf("group %s was frozen anew by %s (%s): %w", out.Group, job, why, ErrStale)
	case c.status == "ok":
		out.Already = false
		out.Job, _, out.Was = readFrozen(c.before)
	}
	return out, nil
}

// Limits lists the limits that are defined, by name.
func (q *Queue) Limits(ctx context.Context) ([]jobs.Limit, error) {
	out := []jobs.Limit{}
	zones, err := q.Zones(ctx)
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		all, most, err := q.semaphores(ctx, zone)
		if err != nil {
			return nil, err
		}
		for _, s := range all {
			n, ok := most[s.name]
			if !ok {
				continue
			}
			l := jobs.Limit{Name: s.name, Zone: zone, Max: n, Used: len(s.holders), Waits: s.waits,
				Holders: []jobs.ID{}}
			for holder := range s.holders {
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

// Thaw ends the freeze of a zone by hand. It is true if the zone was not frozen.
func (q *Queue) Thaw(ctx context.Context, zone, note string) (bool, error) {
	if err := q.knowZone(ctx, zone); err != nil {
		return false, err
	}
	c, err := q.control(ctx, zone, turn{verb: "thaw", note: note})
	return c.status == "already", err
}

// waitsFor is what a job waits for that another has; empty if nothing is known.
// Only for one job: it asks for each resource.
func (q *Queue) waitsFor(ctx context.Context, zone string, id jobs.ID) (string, error) {
	h, err := q.rdb.HMGet(ctx, zoneKey(zone, "task:", string(id.Task())), "inventory",
		"guard").Result()
	if err != nil {
		return "", q.say("job", err)
	}
	version, _ := h[0].(string)
	guard, _ := h[1].(string)
	names := []string{}
	if guard != "" {
		traits, err := q.rdb.HGet(ctx, zoneKey(zone, "traits:", version), id.Host()).Result()
		if err == nil {
			names = needs(guard, traits)
		}
	}
	cmds := make([]*redis.FloatCmd, len(names))
	var host *redis.FloatCmd
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		host = p.ZScore(ctx, zoneKey(zone, "wait:", "host/"+id.Host()), string(id))
		for i, name := range names {
			key := zoneKey(zone, "wait:", name+":"+string(id.Task()))
			cmds[i] = p.ZScore(ctx, key, string(id))
		}
		return nil
	})
	if err != nil && err != redis.Nil {
		return "", q.say("job", err)
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

// needs is what exclude.lua has under the same name.
func needs(guard, traits string) []string {
	words := strings.Fields(traits)
	var out []string
	if len(words) > 1 && words[1] != "-" && guard[0] != '-' {
		out = append(out, groupPrefix+words[1])
	}
	if len(words) > 2 {
		out = append(out, words[2:]...)
	}
	return append(out, strings.Fields(guard[1:])...)
}

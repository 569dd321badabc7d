package hub

import (
	"context"
	"maps"
	"slices"
	"strings"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Drains stores the hosts that selections leave out.
type Drains struct{ c *queue.Conn }

// NewDrains returns the drained hosts behind a connection.
func NewDrains(c *queue.Conn) *Drains { return &Drains{c} }

// Drain makes selections leave hosts out until Undrain. hosts are by zone. It returns the hosts
// that were not drained before; the others keep their person and reason. The event comes first, so
// that no host is drained without one; a call that broke off in between makes the event once more
// when it is repeated.
func (q *Drains) Drain(ctx context.Context, hosts map[string][]string, note string) ([]string,
	error) {
	already, err := q.Drained(ctx)
	if err != nil {
		return nil, err
	}
	fresh, changed := sift(hosts, func(host string) bool { _, is := already[host]; return !is })
	if err := q.tellHosts(ctx, fresh, "drain", note); err != nil || len(changed) == 0 {
		return nil, err
	}
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return nil, err
	}
	var pairs []any
	for _, host := range changed {
		pairs = append(pairs, host, jobs.MicrosOf(now).String()+" "+codec.OneLine(note))
	}
	if err := q.stampDrained(ctx); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(pairs, 2*codec.ChunkMax) {
		if err := q.c.Redis().HSet(ctx, keys.Hub("drained", ""), part...).Err(); err != nil {
			return nil, q.c.Say("drain", err)
		}
	}
	return changed, nil
}

// stampDrained changes the mark by which a copy of the drained hosts learns of a change.
func (q *Drains) stampDrained(ctx context.Context) error {
	return q.c.Say("drain", q.c.Redis().HIncrBy(ctx, keys.Hub("stamps", ""), jobs.AgreedDrained,
		1).Err())
}

// Undrain lets selections use hosts again. It returns the hosts that were drained.
func (q *Drains) Undrain(ctx context.Context, hosts map[string][]string, note string) ([]string,
	error) {
	drained, err := q.Drained(ctx)
	if err != nil {
		return nil, err
	}
	those, changed := sift(hosts, func(host string) bool { _, is := drained[host]; return is })
	if err := q.tellHosts(ctx, those, "undrain", note); err != nil {
		return nil, err
	}
	if err := q.stampDrained(ctx); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(changed, codec.ChunkMax) {
		if err := q.c.Redis().HDel(ctx, keys.Hub("drained", ""), part...).Err(); err != nil {
			return nil, q.c.Say("undrain", err)
		}
	}
	return changed, nil
}

// sift keeps only the hosts for which is holds, by zone and in one sorted list.
func sift(hosts map[string][]string, is func(host string) bool) (map[string][]string, []string) {
	left, all := map[string][]string{}, []string{}
	for zone, list := range hosts {
		for _, host := range list {
			if is(host) {
				left[zone] = append(left[zone], host)
				all = append(all, host)
			}
		}
	}
	slices.Sort(all)
	return left, all
}

// tellHosts writes an event for each host in its zone.
func (q *Drains) tellHosts(ctx context.Context, hosts map[string][]string, verb,
	note string) error {
	for _, zone := range slices.Sorted(maps.Keys(hosts)) {
		list := hosts[zone]
		// The first call makes sure that Redis has the script.
		if _, err := q.c.Turn(ctx, zone, codec.Turn{Verb: verb, Object: list[0],
			Note: note}); err != nil {
			return err
		}
		if len(list) == 1 {
			continue
		}
		err := q.c.Pipeline(ctx, zone, queue.Calls{Script: queue.Scripts.Control, N: len(list) - 1,
			Args: func(i int) []any { return []any{verb, list[i+1], codec.OneLine(note), ""} }})
		if err != nil {
			return err
		}
	}
	return nil
}

// Drained returns the drained hosts.
func (q *Drains) Drained(ctx context.Context) (map[string]jobs.Drain, error) {
	h, err := q.c.Redis().HGetAll(ctx, keys.Hub("drained", "")).Result()
	if err != nil {
		return nil, q.c.Say("drained", err)
	}
	out := make(map[string]jobs.Drain, len(h))
	for host, text := range h {
		at, note, _ := strings.Cut(text, " ")
		since, _ := jobs.ParseMicros(at)
		out[host] = jobs.Drain{Note: note, At: jobs.TimeOf(since)}
	}
	return out, nil
}

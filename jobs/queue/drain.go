package queue

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// Drain lets selections leave hosts out until Undrain. hosts are by zone. It returns
// those that were not drained before; the others keep who drained them and why. An
// event comes first, so that nothing is drained of which the events do not tell; a
// call that broke off in between tells it once more when it is repeated.
func (q *Queue) Drain(ctx context.Context, hosts map[string][]string, note string) ([]string,
	error) {
	already, err := q.Drained(ctx)
	if err != nil {
		return nil, err
	}
	fresh, changed := sift(hosts, func(host string) bool { _, is := already[host]; return !is })
	if err := q.tellHosts(ctx, fresh, "drain", note); err != nil || len(changed) == 0 {
		return nil, err
	}
	now, err := q.now(ctx, HubZone)
	if err != nil {
		return nil, err
	}
	var pairs []any
	for _, host := range changed {
		pairs = append(pairs, host, jobs.MicrosOf(now).String()+" "+oneLine(note))
	}
	if err := q.stampDrained(ctx); err != nil {
		return nil, err
	}
	for part := range slices.Chunk(pairs, 2*chunkMax) {
		if err := q.rdb.HSet(ctx, hubKey("drained", ""), part...).Err(); err != nil {
			return nil, q.say("drain", err)
		}
	}
	return changed, nil
}

// stampDrained tells who keeps a copy of the drained hosts that they change.
func (q *Queue) stampDrained(ctx context.Context) error {
	return q.say("drain", q.rdb.HIncrBy(ctx, hubKey("stamps", ""), jobs.AgreedDrained, 1).Err())
}

// Undrain ends that. It returns the hosts that were drained.
func (q *Queue) Undrain(ctx context.Context, hosts map[string][]string, note string) ([]string,
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
	for part := range slices.Chunk(changed, chunkMax) {
		if err := q.rdb.HDel(ctx, hubKey("drained", ""), part...).Err(); err != nil {
			return nil, q.say("undrain", err)
		}
	}
	return changed, nil
}

// sift leaves only the hosts for which is holds, by zone and in one sorted list.
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

// tellHosts makes an event of each host in its zone.
func (q *Queue) tellHosts(ctx context.Context, hosts map[string][]string, verb, note string) error {
	for _, zone := range slices.Sorted(maps.Keys(hosts)) {
		list := hosts[zone]
		// The first call makes sure that the script is known.
		if _, err := q.control(ctx, zone, turn{verb: verb, object: list[0], note: note}); err != nil {
			return err
		}
		if len(list) == 1 {
			continue
		}
		err := q.pipeline(ctx, zone, calls{script: scripts.control, n: len(list) - 1,
			args: func(i int) []any { return []any{verb, list[i+1], oneLine(note), ""} }})
		if err != nil {
			return err
		}
	}
	return nil
}

// Drained lists the drained hosts.
func (q *Queue) Drained(ctx context.Context) (map[string]jobs.Drain, error) {
	h, err := q.rdb.HGetAll(ctx, hubKey("drained", "")).Result()
	if err != nil {
		return nil, q.say("drained", err)
	}
	out := make(map[string]jobs.Drain, len(h))
	for host, text := range h {
		at, note, _ := strings.Cut(text, " ")
		since, _ := jobs.ParseMicros(at)
		out[host] = jobs.Drain{Note: note, At: jobs.TimeOf(since)}
	}
	return out, nil
}

// HostWork tells what a host has to do with jobs: who holds its lock, and its jobs
// of the newest tasks, at most so many of these.
func (q *Queue) HostWork(ctx context.Context, zone, host string, tasks int) (jobs.HostWork, error) {
	w := jobs.HostWork{Jobs: []jobs.JobInfo{}}
	var lock *redis.StringCmd
	var now *redis.TimeCmd
	var ids *redis.StringSliceCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		lock = p.HGet(ctx, zoneKey(zone, "locks", ""), host)
		now = p.Time(ctx)
		ids = p.ZRevRange(ctx, hubKey("tasks", ""), 0, int64(tasks)-1)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return w, q.say("host", err)
	}
	// Until when, token and job; a lock that has ended may still be there.
	if words := strings.Fields(lock.Val()); len(words) == 3 {
		until, _ := jobs.ParseMicros(words[0])
		if until > jobs.MicrosOf(now.Val()) {
			w.Lock = jobs.ID(words[2])
			w.Until = jobs.Time{Time: until.Time().Truncate(time.Millisecond)}
		}
	}
	w.Jobs, err = q.jobsOn(ctx, zone, host, ids.Val())
	return w, err
}

// jobsOn are the jobs of tasks on a host, of those that have one there.
func (q *Queue) jobsOn(ctx context.Context, zone, host string, tasks []string) ([]jobs.JobInfo,
	error) {
	heads := make([]*redis.SliceCmd, len(tasks))
	scores := make([][3]*redis.FloatCmd, len(tasks))
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, task := range tasks {
			id := string(jobs.NewID(jobs.TaskID(task), host))
			heads[i] = p.HMGet(ctx, zoneKey(zone, "task:", task), "due", "committed",
				recordField(host))
			for k, key := range []string{zoneKey(zone, "queue", ""), zoneKey(zone, "again", ""),
				zoneKey(zone, "held:", task)} {
				scores[i][k] = p.ZScore(ctx, key, id)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, q.say("host", err)
	}
	list := []jobs.JobInfo{}
	for i, task := range tasks {
		s := scores[i]
		at := place{s[0].Val(), s[1].Val(), s[2].Val(), heads[i].Val(), 0}
		text, _ := heads[i].Val()[2].(string)
		if text == "" && at.queue+at.again+at.held == 0 {
			continue
		}
		r, err := readRecord(text)
		if err != nil {
			return nil, fmt.Errorf("task %s on %s: %w", task, host, err)
		}
		list = append(list, info(&r, jobs.NewID(jobs.TaskID(task), host), at))
	}
	return list, nil
}

package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// whyNot says in words why a job does not run that could, or empty if nothing but other jobs
// is in its way. Only for one job: it asks for much.
func (q *Queue) whyNot(ctx context.Context, zone string, j jobs.JobInfo) (string, error) {
	switch j.State {
	case jobs.Blocked:
		// Who frees what it waits for must hear that it would not begin then either.
		stands, err := q.whyStands(ctx, zone, j)
		if err != nil {
			return "", err
		}
		blocked, err := q.whyBlocked(ctx, zone, j.Waits)
		return together(stands, blocked), err
	case jobs.Retry, jobs.Waiting, jobs.Deferred:
		stands, err := q.whyStands(ctx, zone, j)
		return together(stands, j.Why), err
	case jobs.Queued, jobs.Paused, jobs.Held:
		stands, err := q.whyStands(ctx, zone, j)
		return cmp.Or(stands, j.Why), err
	case jobs.Running, jobs.Lost:
		stops, err := q.whyStops(ctx, zone, j.ID)
		return cmp.Or(stops, j.Why), err
	}
	return j.Why, nil
}

// together joins two reasons, of which each may be empty.
func together(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// whyStops says who has ordered that a job in hand ends; empty: nobody.
func (q *Queue) whyStops(ctx context.Context, zone string, id jobs.ID) (string, error) {
	v, err := q.rdb.HMGet(ctx, zoneKey(zone, "task:", string(id.Task())), "cancel",
		recordField(id.Host())).Result()
	if err != nil {
		return "", q.say("job", err)
	}
	r, err := readRecord(textOf(v, 1))
	note := cmp.Or(r.cancel, textOf(v, 0))
	if err != nil || note == "" {
		return "", err
	}
	return "it is being stopped: " + note, nil
}

// whyBlocked says who has what a job needs.
func (q *Queue) whyBlocked(ctx context.Context, zone, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	var lock, most *redis.StringCmd
	var holders *redis.MapStringStringCmd
	var taken *redis.IntCmd
	host, isHost := strings.CutPrefix(name, "host/")
	group, isGroup := strings.CutPrefix(name, groupPrefix)
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		lock = p.HGet(ctx, zoneKey(zone, "locks", ""), host)
		most = p.HGet(ctx, zoneKey(zone, "limits", ""), name)
		taken = p.HLen(ctx, zoneKey(zone, "sem:", name))
		if isGroup { // the others may be held by very many
			holders = p.HGetAll(ctx, zoneKey(zone, "sem:", name))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", q.say("job", err)
	}
	switch {
	case isHost:
		return q.whyLocked(ctx, zone, strings.Fields(lock.Val()))
	case isGroup:
		g := readGroup(zone, group, semaphore{holders: holders.Val()})
		return groupWords(g), nil
	case strings.HasPrefix(name, "rule:"):
		return fmt.Sprintf("no more of its task may begin: %d have begun and not ended",
			taken.Val()), nil
	}
	return fmt.Sprintf("limit %s: %d of %s places are taken", name, taken.Val(),
		cmp.Or(most.Val(), "any number of")), nil
}

// lookThenRelease is what a person does about a host that is locked for longer than needed.
const lookThenRelease = "look at the host; once nothing runs there, `muster hosts release HOST " +
	"--reason …` gives it back"

// whyLocked says who has a host by its lock: until, token, job. That of a job which has
// ended is kept while something of it may still act there.
func (q *Queue) whyLocked(ctx context.Context, zone string, lock []string) (string, error) {
	if len(lock) < 3 {
		return "its host was held by another job, and is free now", nil
	}
	id := jobs.ID(lock[2])
	until, _ := jobs.ParseMicros(lock[0])
	since, _ := jobs.ParseMicros(lock[1])
	var known *redis.IntCmd
	var text *redis.StringCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		known = p.Exists(ctx, zoneKey(zone, "task:", string(id.Task())))
		text = p.HGet(ctx, zoneKey(zone, "task:", string(id.Task())), recordField(id.Host()))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", q.say("job", err)
	}
	r, err := readRecord(text.Val())
	switch {
	case err != nil:
		return "", err
	case known.Val() == 0:
		return fmt.Sprintf("its host stays locked until %s for job %s, which Redis has forgotten with "+
			"its task, and something of it may still act there; %s", jobs.TimeOf(until), id,
			lookThenRelease), nil
	case r.state != jobs.Ended:
		return fmt.Sprintf("its host is held by job %s since %s", id, jobs.TimeOf(since)), nil
	}
	return fmt.Sprintf("its host stays locked until %s: job %s ended %s at %s, and something of it "+
		"may still act there (%s); %s", jobs.TimeOf(until), id, r.end.outcome, jobs.TimeOf(r.end.at),
		r.end.err, lookThenRelease), nil
}

func groupWords(g jobs.Group) string {
	switch {
	case g.Frozen != "":
		return fmt.Sprintf("group %s is frozen since %s by job %s: %s; look at its hosts, then `muster "+
			"group clear %[1]s --reason '…'`", g.Name, g.Since, g.Job, g.Frozen)
	case g.Holder != "":
		return fmt.Sprintf("group %s is held by job %s since %s", g.Name, g.Holder, g.Since)
	}
	return fmt.Sprintf("group %s was held by another job, and is free now", g.Name)
}

// whyStands says who ordered that a job does not begin.
func (q *Queue) whyStands(ctx context.Context, zone string, j jobs.JobInfo) (string, error) {
	var task, all *redis.SliceCmd
	var now *redis.TimeCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		task = p.HMGet(ctx, zoneKey(zone, "task:", string(j.ID.Task())), "pausedNote", "stoppedNote",
			"inventory", "committed")
		all = p.HMGet(ctx, zoneKey(zone, "zone", ""), "halted", "paused", "frozen", "why", "customers")
		now = p.Time(ctx)
		return nil
	})
	if err != nil {
		return "", q.say("job", err)
	}
	frozen, _ := jobs.ParseMicros(textOf(all.Val(), 2))
	until := jobs.TimeOf(frozen)
	var out []string
	say := func(words, note string) {
		if note != "" {
			out = append(out, words+note)
		}
	}
	say("all is halted: ", textOf(all.Val(), 0))
	if until.After(now.Val()) {
		say("its zone is frozen until "+until.String()+": ", textOf(all.Val(), 3))
	}
	say("its zone is paused: ", textOf(all.Val(), 1))
	say("its task is paused: ", textOf(task.Val(), 0))
	say("its task is stopped: ", textOf(task.Val(), 1))
	if customers := readCustomers(textOf(all.Val(), 4)); len(customers) > 0 {
		traits, err := q.rdb.HGet(ctx, zoneKey(zone, "traits:", textOf(task.Val(), 2)),
			j.Host).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return "", q.say("job", err)
		}
		customer, _, _ := strings.Cut(traits, " ")
		say("its customer is paused: ", customers[customer].note)
	}
	switch {
	case len(out) > 0 || j.State != jobs.Held:
	case textOf(task.Val(), 3) == "":
		out = append(out, "its task is being submitted")
	default:
		out = append(out, "its wave is not open yet")
	}
	return strings.Join(slices.Compact(out), "; "), nil
}

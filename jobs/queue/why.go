package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

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

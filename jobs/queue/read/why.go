package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// whyBlocked returns who has a resource that a job needs.
func (q *Groups) whyBlocked(ctx context.Context, zone, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	var lock, most, aside *redis.StringCmd
	var holders *redis.MapStringStringCmd
	var taken *redis.IntCmd
	host, isHost := strings.CutPrefix(name, "host/")
	group, isGroup := strings.CutPrefix(name, codec.GroupPrefix)
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		lock = p.HGet(ctx, keys.Zone(zone, "locks", ""), host)
		aside = p.HGet(ctx, keys.Zone(zone, "quarantined", ""), host)
		most = p.HGet(ctx, keys.Zone(zone, "limits", ""), name)
		taken = p.HLen(ctx, keys.Zone(zone, "sem:", name))
		if isGroup { // a limit or rule may have very many other holders
			holders = p.HGetAll(ctx, keys.Zone(zone, "sem:", name))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", q.c.Say("job", err)
	}
	switch {
	case isHost && aside.Val() != "":
		why := "its host is " + quarantine.ReadMark(aside.Val()).Note() + "; " + quarantine.How
		if lock.Val() == "" {
			return why, nil
		}
		locked, err := q.whyLocked(ctx, zone, strings.Fields(lock.Val()))
		return locked + "; and " + why, err // a check waits for the lock alone
	case isHost:
		return q.whyLocked(ctx, zone, strings.Fields(lock.Val()))
	case isGroup:
		g := codec.ReadGroup(zone, group, codec.Semaphore{Holders: holders.Val()})
		return groupWords(g), nil
	case strings.HasPrefix(name, "rule:"):
		return fmt.Sprintf("no more of its task may begin: %d have begun and not ended",
			taken.Val()), nil
	}
	return fmt.Sprintf("limit %s: %d of %s places are taken", name, taken.Val(),
		cmp.Or(most.Val(), "any number of")), nil
}

// lookThenRelease advises a person about a host that is locked for longer than needed.
const lookThenRelease = "look at the host; once nothing runs there, `muster hosts release HOST " +
	"--reason …` gives it back"

// whyLocked explains who holds a host by its lock: until, token, job. The lock of a job that has
// ended is kept while a part of the job may still act on the host.
func (q *Groups) whyLocked(ctx context.Context, zone string, lock []string) (string, error) {
	if len(lock) < 3 {
		return "its host was held by another job, and is free now", nil
	}
	id := jobs.ID(lock[2])
	until, _ := jobs.ParseMicros(lock[0])
	since, _ := jobs.ParseMicros(lock[1])
	var known *redis.IntCmd
	var text *redis.StringCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		known = p.Exists(ctx, keys.Zone(zone, "task:", string(id.Task())))
		text = p.HGet(ctx, keys.Zone(zone, "task:", string(id.Task())), codec.RecordField(id.Host()))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", q.c.Say("job", err)
	}
	r, err := codec.ReadRecord(text.Val())
	switch {
	case err != nil:
		return "", err
	case known.Val() == 0:
		return fmt.Sprintf("its host stays locked until %s for job %s, which Redis has forgotten with "+
			"its task, and something of it may still act there; %s", jobs.TimeOf(until), id,
			lookThenRelease), nil
	case r.State != jobs.Ended:
		return fmt.Sprintf("its host is held by job %s since %s", id, jobs.TimeOf(since)), nil
	}
	return fmt.Sprintf("its host stays locked until %s: job %s ended %s at %s, and something of it "+
		"may still act there (%s); %s", jobs.TimeOf(until), id, r.End.Outcome, jobs.TimeOf(r.End.At),
		r.End.Err, lookThenRelease), nil
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

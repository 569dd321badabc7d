package queue

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// countRunning tells how many jobs are in hand where something was switched off, of
// the zones that could be asked.
func (q *Queue) countRunning(ctx context.Context, out *jobs.Switched) error {
	if out.What == jobs.SwitchTask {
		t, err := q.Task(ctx, jobs.TaskID(out.Name))
		out.Running = t.Running
		return err
	}
	if !out.Paused {
		return nil
	}
	for _, zone := range out.Zones {
		n, err := 0, error(nil)
		if out.What == jobs.SwitchCustomer {
			n, err = q.runningOf(ctx, zone, out.Name)
		} else {
			n, err = q.runningIn(ctx, zone)
		}
		if err != nil {
			return err
		}
		out.Running += n
	}
	return nil
}

// runningIn is how many jobs of a zone are in hand, by the counters of its tasks.
func (q *Queue) runningIn(ctx context.Context, zone string) (sum int, err error) {
	for from := int64(0); ; from += chunkMax {
		ids, err := q.rdb.ZRange(ctx, zoneKey(zone, "open", ""), from, from+chunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return sum, q.say("running", err)
		}
		cmds, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range ids {
				p.HMGet(ctx, zoneKey(zone, "task:", id), "running")
			}
			return nil
		})
		if err != nil {
			return sum, q.say("running", err)
		}
		for _, c := range cmds {
			n, _ := strconv.Atoi(textOf(c.(*redis.SliceCmd).Val(), 0))
			sum += n
		}
	}
}

// runningOf is how many jobs on hosts of a customer are in hand. Each holds its host.
func (q *Queue) runningOf(ctx context.Context, zone, customer string) (int, error) {
	seen := map[jobs.ID]bool{} // a scan may tell the same twice
	for cursor := uint64(0); ; {
		pairs, next, err := q.rdb.HScan(ctx, zoneKey(zone, "locks", ""), cursor, "", chunkMax).Result()
		if err != nil {
			return 0, q.say("running", err)
		}
		var ids []jobs.ID
		for i := 1; i < len(pairs); i += 2 {
			if words := strings.Fields(pairs[i]); len(words) == 3 && !seen[jobs.ID(words[2])] {
				ids = append(ids, jobs.ID(words[2]))
			}
		}
		if err := q.noteRunning(ctx, zone, customer, ids, seen); err != nil {
			return 0, err
		}
		if cursor = next; cursor == 0 {
			return len(seen), nil
		}
	}
}

// noteRunning notes those of the jobs that run on a host of the customer.
func (q *Queue) noteRunning(ctx context.Context, zone, customer string, ids []jobs.ID,
	seen map[jobs.ID]bool) error {
	if len(ids) == 0 {
		return nil
	}
	read := func(add func(redis.Pipeliner, jobs.ID) *redis.SliceCmd) ([]*redis.SliceCmd, error) {
		cmds := make([]*redis.SliceCmd, len(ids))
		_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				cmds[i] = add(p, id)
			}
			return nil
		})
		return cmds, q.say("running", err)
	}
	records, err := read(func(p redis.Pipeliner, id jobs.ID) *redis.SliceCmd {
		return p.HMGet(ctx, zoneKey(zone, "task:", string(id.Task())), "inventory",
			recordField(id.Host()))
	})
	if err != nil {
		return err
	}
	version := map[jobs.ID]string{}
	for i, id := range ids {
		version[id] = textOf(records[i].Val(), 0)
	}
	traits, err := read(func(p redis.Pipeliner, id jobs.ID) *redis.SliceCmd {
		return p.HMGet(ctx, zoneKey(zone, "traits:", version[id]), id.Host())
	})
	if err != nil {
		return err
	}
	for i, id := range ids {
		r, err := readRecord(textOf(records[i].Val(), 1))
		if err != nil {
			return err
		}
		of, _, _ := strings.Cut(textOf(traits[i].Val(), 0), " ")
		if r.state == jobs.Running && of == customer {
			seen[id] = true
		}
	}
	return nil
}

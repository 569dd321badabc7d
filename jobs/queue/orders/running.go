package orders

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// running counts the jobs in hand.
type running struct {
	c     *queue.Conn
	tasks Tasks
}

// countRunning counts the jobs in hand that a switch does not stop, in the zones that answered.
func (q *running) countRunning(ctx context.Context, out *jobs.Switched) error {
	if out.What == jobs.SwitchTask {
		t, err := q.tasks.Task(ctx, jobs.TaskID(out.Name))
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

// runningIn returns the number of jobs of a zone in hand, by the counters of its tasks.
func (q *running) runningIn(ctx context.Context, zone string) (sum int, err error) {
	for from := int64(0); ; from += codec.ChunkMax {
		ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), from,
			from+codec.ChunkMax-1).Result()
		if err != nil || len(ids) == 0 {
			return sum, q.c.Say("running", err)
		}
		cmds, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, id := range ids {
				p.HMGet(ctx, keys.Zone(zone, "task:", id), "running")
			}
			return nil
		})
		if err != nil {
			return sum, q.c.Say("running", err)
		}
		for _, c := range cmds {
			n, _ := strconv.Atoi(codec.TextOf(c.(*redis.SliceCmd).Val(), 0))
			sum += n
		}
	}
}

// runningOf returns the number of jobs in hand on hosts of a customer. Each of them holds its host.
func (q *running) runningOf(ctx context.Context, zone, customer string) (int, error) {
	seen := map[jobs.ID]bool{} // a scan may return the same job twice
	for cursor := uint64(0); ; {
		pairs, next, err := q.c.Redis().HScan(ctx, keys.Zone(zone, "locks", ""), cursor, "",
			codec.ChunkMax).Result()
		if err != nil {
			return 0, q.c.Say("running", err)
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

// noteRunning adds to seen those of the jobs that run on a host of the customer.
func (q *running) noteRunning(ctx context.Context, zone, customer string, ids []jobs.ID,
	seen map[jobs.ID]bool) error {
	if len(ids) == 0 {
		return nil
	}
	read := func(add func(redis.Pipeliner, jobs.ID) *redis.SliceCmd) ([]*redis.SliceCmd, error) {
		cmds := make([]*redis.SliceCmd, len(ids))
		_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range ids {
				cmds[i] = add(p, id)
			}
			return nil
		})
		return cmds, q.c.Say("running", err)
	}
	records, err := read(func(p redis.Pipeliner, id jobs.ID) *redis.SliceCmd {
		return p.HMGet(ctx, keys.Zone(zone, "task:", string(id.Task())), "inventory",
			codec.RecordField(id.Host()))
	})
	if err != nil {
		return err
	}
	version := map[jobs.ID]string{}
	for i, id := range ids {
		version[id] = codec.TextOf(records[i].Val(), 0)
	}
	traits, err := read(func(p redis.Pipeliner, id jobs.ID) *redis.SliceCmd {
		return p.HMGet(ctx, keys.Zone(zone, "traits:", version[id]), id.Host())
	})
	if err != nil {
		return err
	}
	for i, id := range ids {
		r, err := codec.ReadRecord(codec.TextOf(records[i].Val(), 1))
		if err != nil {
			return err
		}
		of, _, _ := strings.Cut(codec.TextOf(traits[i].Val(), 0), " ")
		if r.State == jobs.Running && of == customer {
			seen[id] = true
		}
	}
	return nil
}

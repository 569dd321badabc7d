package read

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// The bounds of one reading of a queue.
const (
	sharesRead  = 1000 // open tasks whose counters are read, the longest due first
	sharesShown = 10
	oldestOf    = 100 // jobs at the front of the queue
)

// sharing counts the waiting jobs of each task, by the counters of the tasks.
func (q *Zones) sharing(ctx context.Context, zone string, now time.Time) (jobs.Sharing, error) {
	s := jobs.Sharing{Shares: []jobs.Share{}}
	var count *redis.IntCmd
	var open *redis.StringSliceCmd
	var walked, overload *redis.StringCmd
	var ttl *redis.DurationCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		count = p.ZCard(ctx, keys.Zone(zone, "open", ""))
		open = p.ZRange(ctx, keys.Zone(zone, "open", ""), 0, sharesRead-1)
		walked = p.HGet(ctx, keys.Zone(zone, "zone", ""), "reordered")
		overload = p.Get(ctx, keys.Zone(zone, "overload", ""))
		ttl = p.PTTL(ctx, keys.Zone(zone, "overload", ""))
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return s, q.c.Say("queue", err)
	}
	s.Tasks = int(count.Val())
	s.Reordered = readReordered(walked.Val())
	switch {
	case overload.Val() == "":
	case overload.Val() == coolDown:
		s.Reordered.Next = jobs.Time{Time: now.Add(ttl.Val())}
	default:
		s.Reordered.Now = true
	}
	all, err := q.shares(ctx, zone, open.Val())
	if err != nil {
		return s, err
	}
	for _, share := range all {
		if share.Waiting > 0 {
			s.Shares = append(s.Shares, share)
		}
	}
	slices.SortStableFunc(s.Shares, func(a, b jobs.Share) int {
		return cmp.Compare(b.Waiting, a.Waiting)
	})
	s.Shares = s.Shares[:min(len(s.Shares), sharesShown)]
	return s, nil
}

// coolDown is the value of the key overload after a walk; see reorder.lua.
const coolDown = "cool"

// readReordered reads the record that reorder.lua keeps of a walk: its end, and its event.
func readReordered(text string) (r jobs.Reordered) {
	at, detail, _ := strings.Cut(text, " ")
	var d struct {
		Node  string          `json:"node"`
		Moved int             `json:"moved"`
		Took  int64           `json:"took"`
		End   jobs.ReorderEnd `json:"end"`
	}
	when, err := jobs.ParseMicros(at)
	if err != nil || json.Unmarshal([]byte(detail), &d) != nil {
		return r
	}
	return jobs.Reordered{At: jobs.TimeOf(when), Moved: d.Moved, By: d.Node, End: d.End,
		Seconds: (time.Duration(d.Took) * time.Microsecond).Seconds()}
}

// shares reads the counters of tasks. A task that is gone has zeros.
func (q *Zones) shares(ctx context.Context, zone string, ids []string) ([]jobs.Share, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	cmds := make([]*redis.SliceCmd, len(ids))
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			cmds[i] = p.HMGet(ctx, keys.Zone(zone, "task:", id), "due", "total", "done", "running",
				"operator", "priority")
		}
		return nil
	})
	if err != nil {
		return nil, q.c.Say("queue", err)
	}
	out := make([]jobs.Share, len(ids))
	for i, id := range ids {
		r := codec.Reader{Left: cmds[i].Val()}
		due, total, done, running := r.Micros(), r.Int(), r.Int(), r.Int()
		out[i] = jobs.Share{Task: jobs.TaskID(id), Due: jobs.TimeOf(due), Total: total, Running: running,
			Waiting: max(total-done-running, 0), Operator: r.Text()}
		// A task that was put by an older version has none.
		out[i].Priority, _ = jobs.ParsePriority(r.Text())
	}
	return out, nil
}

// oldest returns the time since which the first job of the queue is due, or at which it is to run.
// After a reordering the scores do not show it, but the tasks of the first jobs do: the task that
// is due longest has a job at the front.
func (q *Zones) oldest(ctx context.Context, zone string, front []redis.Z) (jobs.Time, error) {
	if len(front) == 0 {
		return jobs.Time{}, nil
	}
	var tasks []string
	for _, z := range front {
		id, _ := z.Member.(string)
		if task := string(jobs.ID(id).Task()); !slices.Contains(tasks, task) {
			tasks = append(tasks, task)
		}
	}
	list, err := q.shares(ctx, zone, tasks)
	first := jobs.TimeOf(jobs.Micros(front[0].Score))
	var due jobs.Time
	for _, t := range list {
		if !t.Due.IsZero() && (due.IsZero() || t.Due.Before(due.Time)) {
			due = t.Due
		}
	}
	if due.IsZero() || due.Before(first.Time) {
		due = first
	}
	return due, err
}

package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/jobs/staff"
)

// Nodes reports for each zone which nodes begin jobs there.
type Nodes interface {
	Working(ctx context.Context) (map[string]*staff.Zone, error)
}

// History reports since when events are not stored.
type History interface {
	HistoryAway(ctx context.Context) (jobs.HistoryAway, error)
}

// Tasks reads tasks and their jobs.
type Tasks struct {
	c       *queue.Conn
	groups  *Groups
	nodes   Nodes
	history History
}

// NewTasks returns the tasks behind a connection.
func NewTasks(c *queue.Conn, nodes Nodes, history History) *Tasks {
	return &Tasks{c, NewGroups(c), nodes, history}
}

// addAnswers adds the answers that were given to jobs at a gate.
func (q *Tasks) addAnswers(ctx context.Context, zone string, list []jobs.JobInfo) error {
	var at []int
	var fields []string
	for i, j := range list {
		if j.Gate != nil {
			at, fields = append(at, i), append(fields, codec.GateField(j.ID, j.Gate.Step))
		}
	}
	if len(at) == 0 {
		return nil
	}
	task := list[0].ID.Task() // of all of them
	v, err := q.c.Redis().HMGet(ctx, keys.Zone(zone, "task:", string(task)), fields...).Result()
	if err != nil {
		return q.c.Say("gates", err)
	}
	for n, i := range at {
		list[i].Gate.Answer = jobs.ReadGateAnswer(codec.TextOf(v, n)).Note
	}
	return nil
}

// Tasks returns the newest tasks, newest first, at most limit. Of a task with hosts in a zone whose
// Redis is away it says so, with the numbers of the other zones.
func (q *Tasks) Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error) {
	ids, err := q.c.Redis().ZRevRange(ctx, keys.Hub("tasks", ""), 0, int64(limit)-1).Result()
	if err != nil {
		return nil, q.c.Say("tasks", err)
	}
	out := make([]jobs.TaskInfo, 0, len(ids))
	for _, id := range ids {
		t, err := q.Task(ctx, jobs.TaskID(id))
		if errors.Is(err, queue.ErrNotFound) {
			continue // it was older than tasks are kept
		}
		if queue.Away(err) && t.Task != "" {
			t.State, t.CancelledInSubmit, t.Finished, err = jobs.TaskAway, false, jobs.Time{}, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// taskFields are read of a task in each zone; the outcomes follow.
var taskFields = []string{"total", "running", "committed", "paused", "cancel", "started", "ended",
	"pausedNote"}

// head returns what the zones of a task share, and the time of the hub, in one call.
func (q *Tasks) head(ctx context.Context, id jobs.TaskID) (h map[string]string, now time.Time,
	err error) {
	c, _, err := q.c.At(ctx, keys.HubZone)
	if err != nil {
		return nil, now, err
	}
	var all *redis.MapStringStringCmd
	var at *redis.TimeCmd
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		all, at = p.HGetAll(ctx, keys.Hub("task:", string(id))), p.Time(ctx)
		return nil
	})
	if err != nil {
		q.c.Elsewhere(ctx)
		return nil, now, q.c.Say("task", err)
	}
	return all.Val(), at.Val(), nil
}

// Task returns one task, summed over its zones. It fails if a zone cannot be read, because whoever
// asks for one task decides by the answer.
func (q *Tasks) Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	var t jobs.TaskInfo
	h, now, err := q.head(ctx, id)
	if err != nil {
		return t, err
	}
	if len(h) == 0 {
		return t, fmt.Errorf("task %s: %w", id, queue.ErrNotFound)
	}
	created, _ := jobs.ParseMicros(h["created"])
	proven, _ := strconv.ParseBool(h["proven"])
	t = jobs.TaskInfo{Task: id, Runbook: h["runbook"], On: h["on"], Operator: h["operator"],
		Proven: proven, Inventory: h["inventory"], Zones: strings.Split(h["zones"], ","),
		Outcomes: jobs.NewCounts(), Span: jobs.Span{Submitted: jobs.TimeOf(created)},
		Terms: jobs.Terms{Supersedes: h["key"], RetryOf: jobs.TaskID(h["retry_of"]),
			Reason: h["reason"], Schedule: h["schedule"], Chain: jobs.TaskID(h["chain"])}}
	t.Tick.Time, _ = time.Parse(time.RFC3339, h["tick"]) // most tasks have none
	t.Disruptive, _ = strconv.ParseBool(h["disruptive"])
	t.ProveGroup, _ = strconv.ParseBool(h["prove_group"])
	t.Gates, _ = strconv.ParseBool(h["gates"])
	// A task that was submitted by an older version has none.
	t.Priority, _ = jobs.ParsePriority(h["priority"])
	if t.Ran, err = readRan(h["ran"], h["trace"]); err != nil {
		return t, fmt.Errorf("task %s: %w", id, err)
	}

	fields := slices.Clone(taskFields)
	for _, o := range jobs.Outcomes() {
		fields = append(fields, "o:"+string(o))
	}
	rolls := make([]rollCmd, len(t.Zones))
	cmds := make([]*redis.SliceCmd, len(t.Zones))
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range t.Zones {
			cmds[i] = p.HMGet(ctx, keys.Zone(zone, "task:", string(id)), fields...)
			if h["rollout"] != "" {
				rolls[i] = askRoll(ctx, p, zone, id)
			}
		}
		return nil
	})
	if err != nil && !queue.Away(err) {
		return t, q.c.Say("task", err)
	}
	var parts []taskPart
	for _, cmd := range cmds {
		if cmd.Err() == nil {
			parts = append(parts, readPart(cmd.Val()))
		}
	}
	if len(parts) < len(cmds) {
		sum(&t, parts, now)
		return t, q.c.Say("task", err)
	}
	if h["rollout"] != "" {
		if t.Rollout, err = readRoll(h["rollout"], rolls[0], parts[0]); err != nil {
			return t, fmt.Errorf("task %s: %w", id, err)
		}
	}
	sum(&t, parts, now)
	return t, nil
}

// EachJob passes the jobs of a task to f, zone after zone, in the order of the frozen host list,
// beginning at the position from (0 is the first). Jobs before it cost nothing. One call of f gets
// at most so many jobs, and at most 500.
func (q *Tasks) EachJob(ctx context.Context, id jobs.TaskID, from, most int,
	f func([]jobs.JobInfo) error) error {
	zones, err := q.c.Places.TaskZones(ctx, id)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		total, err := q.c.Redis().HGet(ctx, keys.Zone(zone, "task:", string(id)), "total").Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return q.c.Say("jobs", err)
		}
		if from >= total {
			from -= total
			continue
		}
		err = q.c.Places.EachChunk(ctx, zone, id, from, func(hosts []string) error {
			for part := range slices.Chunk(hosts, min(max(most, 1), codec.ChunkMax)) {
				list, err := q.JobsOn(ctx, zone, id, part)
				if err != nil {
					return err
				}
				if err := f(list); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		from = 0
	}
	return nil
}

// Job returns one job.
func (q *Tasks) Job(ctx context.Context, id jobs.ID) (jobs.JobInfo, error) {
	zone, err := q.c.Places.ZoneOf(ctx, id)
	if err != nil {
		return jobs.JobInfo{}, err
	}
	list, err := q.JobsOn(ctx, zone, id.Task(), []string{id.Host()})
	if err != nil {
		return jobs.JobInfo{}, err
	}
	one := 1
	reasons, err := explainer{q, zone, id.Task(), ""}.all(ctx, []*jobs.JobInfo{&list[0]}, &one)
	if err != nil {
		return list[0], err
	}
	list[0].Why = reasons[0].String()
	if list[0].State == jobs.Ended {
		list[0].Ask, err = q.askOf(ctx, zone, id)
	}
	return list[0], err
}

// JobZone returns the zone of a job.
func (q *Tasks) JobZone(ctx context.Context, id jobs.ID) (string, error) {
	return q.c.Places.ZoneOf(ctx, id)
}

// JobsIn returns some jobs of a task in one zone.
func (q *Tasks) JobsIn(ctx context.Context, zone string, ids []jobs.ID) ([]jobs.JobInfo, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	hosts := make([]string, len(ids))
	for i, id := range ids {
		hosts[i] = id.Host()
	}
	return q.JobsOn(ctx, zone, ids[0].Task(), hosts)
}

// JobsOn returns the jobs of a task on some hosts of one zone, in the order of the hosts.
func (q *Tasks) JobsOn(ctx context.Context, zone string, task jobs.TaskID,
	hosts []string) ([]jobs.JobInfo, error) {
	out := make([]jobs.JobInfo, 0, len(hosts))
	err := q.records(ctx, zone, task, hosts, func(j jobs.JobInfo, _ *codec.Record) {
		out = append(out, j)
	})
	if err != nil {
		return nil, err
	}
	return out, q.addAnswers(ctx, zone, out)
}

// records passes the jobs of a task on some hosts of one zone to f, with their records.
func (q *Tasks) records(ctx context.Context, zone string, task jobs.TaskID, hosts []string,
	f func(jobs.JobInfo, *codec.Record)) error {
	ids := make([]string, len(hosts))
	fields := []string{"due", "committed"}
	for i, host := range hosts {
		ids[i] = string(jobs.NewID(task, host))
		fields = append(fields, codec.RecordField(host))
	}
	var waiting, again, held *redis.FloatSliceCmd
	var head *redis.SliceCmd
	var now *redis.TimeCmd
	c, _, err := q.c.At(ctx, zone) // TIME is of no zone: elsewhere it would ask any server
	if err != nil {
		return err
	}
	_, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		waiting = p.ZMScore(ctx, keys.Zone(zone, "queue", ""), ids...)
		again = p.ZMScore(ctx, keys.Zone(zone, "again", ""), ids...)
		held = p.ZMScore(ctx, keys.Zone(zone, "held:", string(task)), ids...)
		head = p.HMGet(ctx, keys.Zone(zone, "task:", string(task)), fields...)
		now = p.Time(ctx)
		return nil
	})
	if err != nil {
		return q.c.Say("jobs", err)
	}
	for i := range hosts {
		at := place{waiting.Val()[i], again.Val()[i], held.Val()[i], head.Val()[:2],
			jobs.MicrosOf(now.Val())}
		text, _ := head.Val()[2+i].(string)
		r, err := codec.ReadRecord(text)
		if err != nil {
			return fmt.Errorf("job %s: %w", ids[i], err)
		}
		f(info(&r, jobs.ID(ids[i]), at), &r)
	}
	return nil
}

// OpenOf returns the tasks of some runbooks that have not ended in a zone, the one that is due
// longest first.
func (q *Tasks) OpenOf(ctx context.Context, zone string, runbooks ...string) ([]jobs.TaskID,
	error) {
	ids, err := q.c.Redis().ZRange(ctx, keys.Zone(zone, "open", ""), 0, -1).Result()
	if err != nil {
		return nil, q.c.Say("tasks", err)
	}
	var out []jobs.TaskID
	for part := range slices.Chunk(ids, sharesRead) {
		names := make([]*redis.StringCmd, len(part))
		// A task that has gone meanwhile has no runbook.
		_, _ = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range part {
				names[i] = p.HGet(ctx, keys.Hub("task:", id), "runbook")
			}
			return nil
		})
		for i, name := range names {
			if err := name.Err(); err != nil && err != redis.Nil {
				return nil, q.c.Say("tasks", err)
			}
			if slices.Contains(runbooks, name.Val()) {
				out = append(out, jobs.TaskID(part[i]))
			}
		}
	}
	return out, nil
}

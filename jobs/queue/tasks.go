package queue

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
)

// ErrNotFound is wrapped when a task or job is not there, or no more.
var ErrNotFound = errors.New("not found")

func (q *Queue) taskZones(ctx context.Context, id jobs.TaskID) ([]string, error) {
	zones, err := q.rdb.HGet(ctx, hubKey("task:", string(id)), "zones").Result()
	if errors.Is(err, redis.Nil) {
		return nil, fmt.Errorf("task %s: %w", id, ErrNotFound)
	}
	return strings.Split(zones, ","), q.say("task", err)
}

// Tasks lists the newest tasks, newest first; at most limit.
func (q *Queue) Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error) {
	ids, err := q.rdb.ZRevRange(ctx, hubKey("tasks", ""), 0, int64(limit)-1).Result()
	if err != nil {
		return nil, q.say("tasks", err)
	}
	out := make([]jobs.TaskInfo, 0, len(ids))
	for _, id := range ids {
		t, err := q.Task(ctx, jobs.TaskID(id))
		if errors.Is(err, ErrNotFound) {
			continue // older than it is kept
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

// Task is one task, summed over its zones.
func (q *Queue) Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	var t jobs.TaskInfo
	h, err := q.rdb.HGetAll(ctx, hubKey("task:", string(id))).Result()
	if err != nil {
		return t, q.say("task", err)
	}
	if len(h) == 0 {
		return t, fmt.Errorf("task %s: %w", id, ErrNotFound)
	}
	created, _ := jobs.ParseMicros(h["created"])
	proven, _ := strconv.ParseBool(h["proven"])
	t = jobs.TaskInfo{Task: id, Runbook: h["runbook"], On: h["on"], Operator: h["operator"],
		Proven: proven, Inventory: h["inventory"], Zones: strings.Split(h["zones"], ","),
		Outcomes: jobs.NewCounts(), Span: jobs.Span{Submitted: jobs.TimeOf(created)},
		Terms: jobs.Terms{Supersedes: h["key"], RetryOf: jobs.TaskID(h["retry_of"]),
			Reason: h["reason"], Schedule: h["schedule"], Chain: jobs.TaskID(h["chain"])}}
	t.Tick.Time, _ = time.Parse(time.RFC3339, h["tick"]) // most have none
	t.Disruptive, _ = strconv.ParseBool(h["disruptive"])
	t.ProveGroup, _ = strconv.ParseBool(h["prove_group"])
	t.Gates, _ = strconv.ParseBool(h["gates"])
	// One that was submitted by an older version has none.
	t.Priority, _ = jobs.ParsePriority(h["priority"])
	if t.Ran, err = readRan(h["ran"]); err != nil {
		return t, fmt.Errorf("task %s: %w", id, err)
	}

	fields := slices.Clone(taskFields)
	for _, o := range jobs.Outcomes() {
		fields = append(fields, "o:"+string(o))
	}
	rolls := make([]rollCmd, len(t.Zones))
	var now *redis.TimeCmd
	cmds := make([]*redis.SliceCmd, len(t.Zones))
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range t.Zones {
			cmds[i] = p.HMGet(ctx, zoneKey(zone, "task:", string(id)), fields...)
			if h["rollout"] != "" {
				rolls[i] = askRoll(ctx, p, zone, id)
			}
		}
		now = p.Time(ctx)
		return nil
	})
	if err != nil {
		return t, q.say("task", err)
	}
	parts := make([]taskPart, len(cmds))
	for i, cmd := range cmds {
		parts[i] = readPart(cmd.Val())
	}
	if h["rollout"] != "" {
		if t.Rollout, err = readRoll(h["rollout"], rolls[0], parts[0]); err != nil {
			return t, fmt.Errorf("task %s: %w", id, err)
		}
	}
	sum(&t, parts, now.Val())
	return t, nil
}

// taskPart is a task in one zone.
type taskPart struct {
	found             bool
	given             bool // up: cancelled before it was committed
	total, running    int
	committed, paused bool
	cancel, pausedBy  string
	started, ended    jobs.Micros
	outcomes          map[jobs.Outcome]int
}

func readPart(v []any) taskPart {
	text := func(i int) string {
		s, _ := v[i].(string)
		return s
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(text(i))
		return n
	}
	p := taskPart{found: v[0] != nil, total: number(0), running: number(1), committed: text(2) != "",
		paused: text(3) != "", cancel: text(4), pausedBy: text(7), outcomes: map[jobs.Outcome]int{}}
	p.started, _ = jobs.ParseMicros(text(5))
	p.ended, _ = jobs.ParseMicros(text(6))
	for i, o := range jobs.Outcomes() {
		p.outcomes[o] = number(len(taskFields) + i)
	}
	return p
}

// heldKeep is how long a task is kept that was never committed; see put.lua.
const heldKeep = 24 * time.Hour

// neverPut tells the parts of a task that will never be committed, because it was cancelled
// while it was submitted: none of them is put or runs any more, and what was not put ends
// with the rest.
func neverPut(parts []taskPart) []taskPart {
	cancelled := func(p taskPart) bool { return p.cancel != "" && !p.committed }
	if !slices.ContainsFunc(parts, cancelled) {
		return parts
	}
	for i, p := range parts {
		// What a failover made forget its commit may run.
		if p.found && !p.committed && p.running == 0 {
			parts[i].given = true
			p.outcomes[jobs.Cancelled] += max(p.total-jobs.Counts(p.outcomes).Sum(), 0)
		}
	}
	return parts
}

// sum adds the zones' parts up. A task is committed only as a whole, paused if any
// part is that has not ended (a resume leaves such alone), ended if all are.
func sum(t *jobs.TaskInfo, parts []taskPart, now time.Time) {
	committed, paused, ended, found := true, false, true, false
	given, whole := false, false // some part will never be committed; some was
	for _, p := range neverPut(parts) {
		found = found || p.found
		given, whole = given || p.given, whole || p.committed
		t.Total += p.total
		t.Running += p.running
		t.Outcomes.Add(p.outcomes)
		committed = committed && (p.committed || p.given || !p.found)
		ended = ended && (p.ended > 0 || p.given || !p.found)
		if p.cancel != "" {
			t.Cancelled = p.cancel
		}
		if p.paused && p.ended == 0 {
			paused, t.Paused = true, p.pausedBy
		}
		if p.started > 0 && (t.Started.IsZero() || p.started.Time().Before(t.Started.Time)) {
			t.Started = jobs.TimeOf(p.started)
		}
		if p.ended.Time().After(t.Finished.Time) {
			t.Finished = jobs.TimeOf(p.ended)
		}
	}
	t.CancelledInSubmit = given && !whole && t.Started.IsZero()
	until := now.UTC()
	switch {
	case !committed, !found && until.Sub(t.Submitted.Time) < heldKeep:
		t.State = jobs.TaskSubmitting
	case ended:
		t.State = jobs.TaskEnded
		until = t.Finished.Time
	case t.Rollout != nil && t.Rollout.Stopped != "":
		t.State = jobs.TaskStopped
	case paused:
		t.State = jobs.TaskPaused
	case t.Started.IsZero():
		t.State = jobs.TaskQueued
	default:
		t.State = jobs.TaskRunning
	}
	if t.State != jobs.TaskEnded {
		t.Finished = jobs.Time{}
	}
	t.Seconds = max(until.Sub(t.Submitted.Time).Seconds(), 0)
}

// EachJob gives the jobs of a task to f, zone after zone, in the order of the
// frozen host list, from the one at place from on (0 is the first). What stands
// before it costs nothing. One call of f gets at most so many, and at most 500.
func (q *Queue) EachJob(ctx context.Context, id jobs.TaskID, from, most int,
	f func([]jobs.JobInfo) error) error {
	zones, err := q.taskZones(ctx, id)
	if err != nil {
		return err
	}
	for _, zone := range zones {
		total, err := q.rdb.HGet(ctx, zoneKey(zone, "task:", string(id)), "total").Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return q.say("jobs", err)
		}
		if from >= total {
			from -= total
			continue
		}
		err = q.eachChunk(ctx, zone, id, from, func(hosts []string) error {
			for part := range slices.Chunk(hosts, min(max(most, 1), chunkMax)) {
				list, err := q.jobs(ctx, zone, id, part)
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

// eachChunk gives the hosts of a task in one zone to f, from a place on. All
// chunks but the last are full.
func (q *Queue) eachChunk(ctx context.Context, zone string, id jobs.TaskID, from int,
	f func([]string) error) error {
	for chunk := from / hostsMax; ; chunk++ {
		text, err := q.rdb.HGet(ctx, zoneKey(zone, "task:", string(id)),
			"hosts:"+strconv.Itoa(chunk)).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		if err != nil {
			return q.say("jobs", err)
		}
		hosts := strings.Split(text, "\n")
		skip := min(max(from-chunk*hostsMax, 0), len(hosts))
		if err := f(hosts[skip:]); err != nil {
			return err
		}
	}
}

// Job is one job.
func (q *Queue) Job(ctx context.Context, id jobs.ID) (jobs.JobInfo, error) {
	zone, err := q.jobZone(ctx, id)
	if err != nil {
		return jobs.JobInfo{}, err
	}
	list, err := q.jobs(ctx, zone, id.Task(), []string{id.Host()})
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

// JobZone is the zone of a job.
func (q *Queue) JobZone(ctx context.Context, id jobs.ID) (string, error) {
	return q.jobZone(ctx, id)
}

// JobsIn is some jobs of a task in one zone.
func (q *Queue) JobsIn(ctx context.Context, zone string, ids []jobs.ID) ([]jobs.JobInfo, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	hosts := make([]string, len(ids))
	for i, id := range ids {
		hosts[i] = id.Host()
	}
	return q.jobs(ctx, zone, ids[0].Task(), hosts)
}

// jobZone finds the zone of a job; the host list of its task says whether there
// is such a job at all.
func (q *Queue) jobZone(ctx context.Context, id jobs.ID) (string, error) {
	zones, err := q.zonesOf(ctx, []jobs.ID{id})
	for zone := range zones {
		return zone, err
	}
	return "", err
}

func (q *Queue) jobs(ctx context.Context, zone string, task jobs.TaskID,
	hosts []string) ([]jobs.JobInfo, error) {
	ids := make([]string, len(hosts))
	fields := []string{"due", "committed"}
	for i, host := range hosts {
		ids[i] = string(jobs.NewID(task, host))
		fields = append(fields, recordField(host))
	}
	var waiting, again, held *redis.FloatSliceCmd
	var head *redis.SliceCmd
	var now *redis.TimeCmd
	_, err := q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		waiting = p.ZMScore(ctx, zoneKey(zone, "queue", ""), ids...)
		again = p.ZMScore(ctx, zoneKey(zone, "again", ""), ids...)
		held = p.ZMScore(ctx, zoneKey(zone, "held:", string(task)), ids...)
		head = p.HMGet(ctx, zoneKey(zone, "task:", string(task)), fields...)
		now = p.Time(ctx)
		return nil
	})
	if err != nil {
		return nil, q.say("jobs", err)
	}
	out := make([]jobs.JobInfo, len(hosts))
	for i := range hosts {
		at := place{waiting.Val()[i], again.Val()[i], held.Val()[i], head.Val()[:2],
			jobs.MicrosOf(now.Val())}
		text, _ := head.Val()[2+i].(string)
		r, err := readRecord(text)
		if err != nil {
			return nil, fmt.Errorf("job %s: %w", ids[i], err)
		}
		out[i] = info(&r, jobs.ID(ids[i]), at)
	}
	return out, q.addAnswers(ctx, zone, out)
}

// place is where a job was found: its score in each of the sets, 0 if it is not
// there, due and committed of its task, and when; 0: that is not known.
type place struct {
	queue, again, held float64
	task               []any
	now                jobs.Micros
}

// info is a job as people see it.
func info(r *record, id jobs.ID, at place) jobs.JobInfo {
	j := jobs.JobInfo{ID: id, Host: id.Host(), State: r.state, Outcome: r.end.outcome,
		Class: r.end.class, Attempt: r.attempt, Node: r.node, Due: jobs.TimeOf(r.due),
		Started: jobs.TimeOf(r.started), Finished: jobs.TimeOf(r.end.at),
		ExitCode: r.end.exitCode(), Error: r.end.err,
		Step: r.step, Tries: r.tries, Aside: jobs.Aside{Note: r.end.note}}
	if r.due == 0 {
		due, _ := at.task[0].(string)
		m, _ := jobs.ParseMicros(due)
		j.Due = jobs.TimeOf(m)
	}
	if j.State == jobs.Ended {
		j.Times = times(r, jobs.MicrosOf(j.Due.Time), at.now)
		return j
	}
	j.Note, j.Gate = jobs.Saying(r.saved), jobs.GateOf(r.step, r.saved)
	j.Next = jobs.TimeOf(jobs.Micros(max(at.queue, at.again)))
	committed, _ := at.task[1].(string)
	switch {
	case at.held > 0 && at.held <= jobs.WavesMax && committed != "":
		j.State = jobs.Held // its wave is not open
	case at.held > 0 && committed != "":
		j.State = jobs.Paused
	case j.State != "":
	case at.again > 0:
		j.State = jobs.Blocked
	case committed == "":
		j.State = jobs.Held
	default:
		j.State = jobs.Queued
	}
	switch {
	case j.State == jobs.Deferred, j.State == jobs.Retry, j.State == jobs.Waiting,
		j.State == jobs.Verify:
		j.Why = r.why
	case j.State == jobs.Queued && r.later > 0 && r.due > at.now:
		j.Why = "it has a time of its own: a window, a freeze or the jitter of a schedule gave it"
	}
	if j.State != jobs.Held {
		j.Times = times(r, jobs.MicrosOf(j.Due.Time), at.now)
	}
	return j
}

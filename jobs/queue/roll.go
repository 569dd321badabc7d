package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// rulePrefix begins the name of the semaphore that a task's own jobs hold from their
// first take to their end, if it has a rule; see rule.lua.
const rulePrefix = "rule:"

// ruleArgs are the fields of a task that rule.lua and roll.lua read.
func ruleArgs(r *jobs.Rollout) []any {
	if r == nil {
		return nil
	}
	var args []any
	if r.MaxFailed != nil {
		args = append(args, "allowed", *r.MaxFailed)
	}
	if r.UnreachableOK {
		args = append(args, "lenient", digit(true))
	}
	if b := r.Breaker; b.Failures > 0 {
		args = append(args, "breaker", fmt.Sprintf("%d %d %d/%s", b.Failures, b.Within.Microseconds(),
			b.Failures, b.Within))
	}
	if len(r.Waves) > 0 {
		args = append(args, "waves", len(r.Waves), "wave", 1)
	}
	return args
}

// waveScores says to put.lua of which waves the hosts of a chunk are, the one from
// place on: "wave*hosts,…". It is empty if there are no waves.
func waveScores(waves []int, from, hosts int) string {
	text := ""
	for i, n := range waves {
		take := min(max(n-from, 0), hosts)
		from = max(from-n, 0)
		if hosts -= take; take > 0 {
			text += strconv.Itoa(i+1) + "*" + strconv.Itoa(take) + ","
		}
	}
	return text
}

// checkRollout tells whether the numbers of a rollout fit the task. A rule is kept by
// the script that hands jobs out, so it can only be that of one zone.
func checkRollout(t jobs.Task, hosts map[string][]string) error {
	r, n := t.Spec.Rollout, 0
	for _, size := range r.Waves {
		if size < 1 {
			return fmt.Errorf("waves %v: want at least one host in each", r.Waves)
		}
		n += size
	}
	switch {
	case len(hosts) > 1:
		return fmt.Errorf("a task with a rule or waves is of one zone, not of %s",
			strings.Join(slices.Sorted(maps.Keys(hosts)), ", "))
	case len(r.Waves) > 0 && n != t.Total, len(r.Waves) > jobs.WavesMax:
		return fmt.Errorf("%d waves of %d hosts together: want %d hosts, in at most %d waves",
			len(r.Waves), n, t.Total, jobs.WavesMax)
	case r.Breaker.Failures < 0, r.Breaker.Failures > jobs.BreakerMax:
		return fmt.Errorf("breaker of %d failures: want 1 to %d", r.Breaker.Failures, jobs.BreakerMax)
	case !t.Guarded:
		return errors.New("a task with a rule is guarded")
	}
	return nil
}

// indexed is a rollout for lists; empty if there is none.
func indexed(r *jobs.Rollout) (string, error) {
	if r == nil {
		return "", nil
	}
	short := *r
	short.Check = nil
	text, err := json.Marshal(short)
	return string(text), err
}

// rollCmd asks how far a rollout has gone.
type rollCmd struct {
	fields *redis.SliceCmd
	begun  *redis.IntCmd
}

func askRoll(ctx context.Context, p redis.Pipeliner, zone string, id jobs.TaskID) rollCmd {
	return rollCmd{
		p.HMGet(ctx, zoneKey(zone, "task:", string(id)), "allowed", "wave", "stopped", "stoppedNote",
			"over", "pass", "checks", "accepted"),
		p.HLen(ctx, zoneKey(zone, "sem:", rulePrefix+string(id))),
	}
}

func readRoll(asked string, c rollCmd, part taskPart) (*jobs.RolloutInfo, error) {
	out := &jobs.RolloutInfo{}
	if err := json.Unmarshal([]byte(asked), &out.Rollout); err != nil {
		return nil, fmt.Errorf("its rollout cannot be read: %w", err)
	}
	text := func(i int) string {
		s, _ := c.fields.Val()[i].(string)
		return s
	}
	instant := func(i int) jobs.Time {
		m, _ := jobs.ParseMicros(text(i))
		return jobs.TimeOf(m)
	}
	if n, err := strconv.Atoi(text(0)); err == nil {
		out.MaxFailed = &n
	}
	out.Wave, _ = strconv.Atoi(text(1))
	out.StoppedAt, out.Stopped, out.Over = instant(2), text(3), instant(4)
	out.Pass, out.Checks, out.Begun = text(5) != "", jobs.TaskID(text(6)), int(c.begun.Val())
	out.Accepted, _ = strconv.Atoi(text(7))
	for o, n := range part.outcomes {
		if o.Fails(out.UnreachableOK) {
			out.Failed += n
		}
	}
	return out, nil
}

// ErrSpent is wrapped when a task is to go on of which more have failed than may.
var ErrSpent = errors.New("its rule does not hold")

// rolled is the answer of roll.lua.
type rolled struct {
	status, text string
	number       int64
}

func (q *Queue) roll(ctx context.Context, id jobs.TaskID, args ...any) (out rolled, zone string,
	err error) {
	zones, err := q.taskZones(ctx, id)
	if err != nil {
		return out, "", err
	}
	zone = zones[0]
	r, err := q.script(ctx, scriptRoll, zone, append([]any{string(id)}, args...)...)
	if err != nil {
		return out, zone, err
	}
	out = rolled{r.text(), r.text(), int64(r.micros())}
	if r.err != nil {
		return out, zone, fmt.Errorf("%v of task %s: %w", args[0], id, r.err)
	}
	if out.status == absent {
		return out, zone, fmt.Errorf("a rollout of task %s: %w", id, ErrNotFound)
	}
	return out, zone, nil
}

// StopTask lets no further job of a task with a rule begin, until GoOn. What has begun
// goes on to its end. note says who and why.
func (q *Queue) StopTask(ctx context.Context, id jobs.TaskID, note string) (jobs.Rolled, error) {
	r, _, err := q.roll(ctx, id, "stop", oneLine(note), "", "")
	out := jobs.Rolled{Task: id, Stopped: r.status != "ended", Already: r.status != "ok",
		Note: cmp.Or(r.text, note)}
	return out, err
}

// GoOn lets a task go on that was stopped, or opens its next wave without waiting.
// allowed, if not nil, is how many may fail in all from now on. ErrSpent: more have.
func (q *Queue) GoOn(ctx context.Context, id jobs.TaskID, allowed *int, note string) (
	jobs.Rolled, error) {
	out := jobs.Rolled{Task: id, Note: note}
	number := ""
	if allowed != nil {
		number = strconv.Itoa(*allowed)
	}
	r, zone, err := q.roll(ctx, id, "go", oneLine(note), number, "")
	if err != nil {
		return out, err
	}
	out.Failed, out.Was, out.Already = int(r.number), r.text, r.status != "ok"
	switch r.status {
	case "spent":
		return out, fmt.Errorf("%d jobs have failed: %w", r.number, ErrSpent)
	case "ok":
		back, err := q.bringBack(ctx, zone, id, "release", order{note: note})
		out.Moved = int(back.number)
		return out, err
	}
	return out, nil
}

// Rollouts lists the tasks with a rule that have not ended. Beside an error, which names each
// zone that cannot be read, it returns those of the others.
func (q *Queue) Rollouts(ctx context.Context) ([]jobs.TaskID, error) {
	zones, err := q.Zones(ctx)
	if err != nil {
		return nil, err
	}
	out := []jobs.TaskID{}
	var errs []error
	for _, zone := range zones {
		ids, err := q.rdb.SMembers(ctx, zoneKey(zone, "rolling", "")).Result()
		if err != nil {
			errs = append(errs, fmt.Errorf("zone %s: %w", zone, q.say("rollouts", err)))
		}
		for _, id := range ids {
			out = append(out, jobs.TaskID(id))
		}
	}
	slices.Sort(out)
	return out, errors.Join(errs...)
}

// LookAtWaves notes when all jobs of the open waves of a task have ended, and brings
// back what a server left half way. over is since when they have; zero: they have not.
func (q *Queue) LookAtWaves(ctx context.Context, id jobs.TaskID) (over jobs.Time, err error) {
	r, zone, err := q.roll(ctx, id, "look", "", "", "")
	if err != nil || r.status == "ended" {
		return over, err
	}
	if r.text != "0" {
		if _, err := q.bringBack(ctx, zone, id, "release", order{}); err != nil {
			return over, err
		}
	}
	return jobs.TimeOf(jobs.Micros(r.number)), nil
}

// OpenWave opens the wave behind those that are open, if they have ended and nothing
// keeps the task. It is false if it did not; twice does no harm.
func (q *Queue) OpenWave(ctx context.Context, id jobs.TaskID, wave int, note string) (bool, error) {
	r, zone, err := q.roll(ctx, id, "open", oneLine(note), wave, "")
	if err != nil || r.status != "ok" {
		return false, err
	}
	_, err = q.bringBack(ctx, zone, id, "release", order{note: note})
	return true, err
}

// CheckWaves names the task that is to check the hosts of the open waves, once: it
// returns the one that was named first. It is empty if that is not its turn.
func (q *Queue) CheckWaves(ctx context.Context, id jobs.TaskID, wave int, by jobs.TaskID) (
	jobs.TaskID, error) {
	r, _, err := q.roll(ctx, id, "check", "", wave, string(by))
	return jobs.TaskID(r.text), err
}

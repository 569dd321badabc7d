package queue

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

const (
	tasksKept = 10000
	keyKept   = 100 // tasks of one key
)

// chunkMax bounds the jobs that one call of a script moves.
const chunkMax = 500

// hostsMax bounds the hosts of a task in one chunk.
const hostsMax = 200

// endMax bounds the jobs that a cancel looks at in one call, which takes 10 µs for each.
const endMax = 50

// pipeMax bounds the calls that are under way at once.
const pipeMax = 16

// taskKeep is how long a task is kept: it can be submitted 30 days ahead and wait 30 days more.
const taskKeep = 70 * 24 * time.Hour

// ErrConflict is wrapped by Submit's error when another submit has the task id.
var ErrConflict = errors.New("another task has this id")

// ErrCancelled is wrapped at the end of a submit whose task was cancelled meanwhile.
var ErrCancelled = errors.New("the task was cancelled while it was submitted: submit a new one")

// Submit puts a task with its hosts, by zone, into the queue and commits it.
// Nothing runs before all of it is there. If it fails, the same submit with the
// same task id completes it; what is never completed expires after a day.
// progress, which may be nil, hears how many jobs are in. A task that does jobs of another
// again is put only if no third one does them; see ErrRetried.
func (q *Queue) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
	zones := slices.Sorted(maps.Keys(hosts))
	if err := checkTask(t, hosts); err != nil {
		return err
	}
	put := q.putAll
	if t.Spec.RetryOf != "" {
		put = q.putRetry
	}
	if err := put(ctx, t, hosts, progress); err != nil {
		return fmt.Errorf("submit task %s: %w", t.ID, err)
	}
	if err := q.commitAll(ctx, t.ID, zones); err != nil {
		return fmt.Errorf("submit task %s: %w", t.ID, err)
	}
	if err := q.supersede(ctx, t); err != nil {
		return fmt.Errorf("task %s is accepted, but what it supersedes was not ended, submit it "+
			"again with its id: %w", t.ID, err)
	}
	return nil
}

// putAll puts a task with all its hosts.
func (q *Queue) putAll(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
	zones := slices.Sorted(maps.Keys(hosts))
	done, indexed := 0, false
	for _, z := range zones {
		err := q.putZone(ctx, z, t, hosts[z], func(n int) error {
			done += n
			if !indexed {
				// Only now is it sure that the id is not another task's.
				if err := q.index(ctx, t, zones); err != nil {
					return err
				}
				indexed = true
			}
			if progress != nil {
				progress(done)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// supersede ends the waiting jobs of older tasks with the same key on the hosts
// that the new one has as well.
func (q *Queue) supersede(ctx context.Context, t jobs.Task) error {
	if t.Spec.Supersedes == "" {
		return nil
	}
	key := hubKey("key:", t.Spec.Supersedes)
	older, err := q.rdb.ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: "-inf",
		Max: "(" + t.Spec.Created.String()}).Result()
	if err != nil {
		return q.say("supersede", err)
	}
	note := fmt.Sprintf("superseded by task %s of %s", t.ID, t.Spec.Operator)
	for _, id := range older {
		end := ending{jobs.TaskID(id), jobs.Superseded, note, string(t.ID)}
		if _, err := q.endAll(ctx, end); err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, key, redis.Z{Score: float64(t.Spec.Created), Member: string(t.ID)})
		p.ZRemRangeByRank(ctx, key, 0, -keyKept-1)
		p.Expire(ctx, key, taskKeep)
		return nil
	})
	return q.say("supersede", err)
}

// commitAll commits a task in all its zones. From its first commit on the task
// is on a list, so that another server goes on if this one dies.
func (q *Queue) commitAll(ctx context.Context, id jobs.TaskID, zones []string) error {
	list := hubKey("commits", "")
	if err := q.rdb.SAdd(ctx, list, string(id)).Err(); err != nil {
		return q.say("commit", err)
	}
	for _, z := range zones {
		if err := q.Commit(ctx, z, id); err != nil {
			return err
		}
	}
	return q.say("commit", q.rdb.SRem(ctx, list, string(id)).Err())
}

func checkTask(t jobs.Task, hosts map[string][]string) error {
	n := 0
	for _, h := range hosts {
		n += len(h)
	}
	var errs []error
	if _, err := jobs.ParseTaskID(string(t.ID)); err != nil {
		errs = append(errs, err)
	}
	if n == 0 {
		errs = append(errs, errors.New("a task needs at least one host"))
	}
	if t.Spec.Timeout <= 0 || t.Spec.Expire <= 0 {
		errs = append(errs, fmt.Errorf("timeout %s, expire %s: want more than 0",
			t.Spec.Timeout, t.Spec.Expire))
	}
	if t.Spec.Rollout != nil {
		errs = append(errs, checkRollout(t, hosts))
	}
	for zone, names := range hosts {
		for _, name := range names {
			if _, err := jobs.ParseID(string(jobs.NewID(t.ID, name))); err != nil {
				errs = append(errs, fmt.Errorf("zone %s: %w", zone, err))
			}
		}
	}
	return errors.Join(errs...)
}

// index writes what the task is in all its zones, so that lists find it even if
// the submitter dies now.
func (q *Queue) index(ctx context.Context, t jobs.Task, zones []string) error {
	s := t.Spec
	rollout, err := indexed(s.Rollout)
	if err != nil {
		return err
	}
	ran, err := writeRan(s.Ran)
	if err != nil {
		return err
	}
	line, err := eventLine(ordered(t))
	if err != nil {
		return err
	}
	_, err = q.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, hubKey("zones", ""), anys(zones)...)
		p.HSet(ctx, hubKey("task:", string(t.ID)), "runbook", s.Runbook, "on", s.On,
			"operator", s.Operator, "proven", s.Proven, "inventory", s.Inventory,
			"created", s.Created.String(), "zones", strings.Join(zones, ","),
			"disruptive", s.Disruptive, "prove_group", s.ProveGroup,
			"key", s.Supersedes, "retry_of", string(s.RetryOf),
			"reason", s.Reason, "priority", string(s.Priority), "schedule", s.Schedule,
			"tick", s.Tick.String(), "rollout", rollout, "gates", s.Gates, "chain", string(s.Chain),
			"ran", ran)
		p.Expire(ctx, hubKey("task:", string(t.ID)), taskKeep)
		p.ZAddNX(ctx, hubKey("tasks", ""), redis.Z{Score: float64(s.Created), Member: string(t.ID)})
		p.ZRemRangeByRank(ctx, hubKey("tasks", ""), 0, -tasksKept-1)
		p.XAdd(ctx, &redis.XAddArgs{Stream: zoneKey(zones[0], "events", ""), MaxLen: zoneEventsMax,
			Approx: true, Values: []any{"e", line}})
		return nil
	})
	return q.say("submit", err)
}

func anys(s []string) []any {
	out := make([]any, len(s))
	for i, x := range s {
		out[i] = x
	}
	return out
}

// fingerprint tells whether two submits of one id are the same; when they were
// made does not count.
func fingerprint(t jobs.Task, hosts []string) (print string, spec []byte, err error) {
	spec, err = json.Marshal(t.Spec)
	if err != nil {
		return "", nil, err
	}
	same := t
	same.Spec.Created = 0
	h := sha256.New()
	if err := json.NewEncoder(h).Encode(same); err != nil {
		return "", nil, err
	}
	for _, name := range hosts {
		h.Write([]byte(name + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:16]), spec, nil
}

func (q *Queue) putZone(ctx context.Context, zone string, t jobs.Task, hosts []string,
	put func(int) error) error {
	print, spec, err := fingerprint(t, hosts)
	if err != nil {
		return err
	}
	t.Own = inTurns(t, hosts)
	chunks := slices.Collect(slices.Chunk(hosts, hostsMax))
	args := func(i int) []any {
		at := timesOf(t, chunks[i])
		if r := t.Spec.Rollout; r != nil && len(r.Waves) > 0 {
			at = waveScores(r.Waves, i*hostsMax, len(chunks[i]))
		}
		return []any{string(t.ID), print, i, at, strings.Join(chunks[i], "\n")}
	}
	first := append(args(0), headArgs(t, len(hosts), len(chunks))...)
	first = append(first, "spec", string(spec))
	r, err := q.script(ctx, scripts.put, zone, first...)
	if err != nil {
		return err
	}
	if err := putAnswer(r.v, zone); err != nil {
		return err
	}
	q.learn(zone, t.Spec.Timeout)
	if why := q.fewer(r.acked); why != "" {
		return fmt.Errorf("%w: %s the jobs, so they were not committed and none runs: submit again",
			ErrFewer, why)
	}
	if err := put(len(chunks[0])); err != nil {
		return err
	}
	return q.pipeline(ctx, zone, calls{script: scripts.put, n: len(chunks) - 1,
		args: func(i int) []any { return args(i + 1) },
		answer: func(i int, v []any) error {
			if err := putAnswer(v, zone); err != nil {
				return err
			}
			return put(len(chunks[i+1]))
		}})
}

// timesOf are when the jobs of hosts are to run, as put.lua reads it.
func timesOf(t jobs.Task, hosts []string) string {
	if len(t.Own) == 0 {
		if t.At == 0 {
			return ""
		}
		return t.At.String()
	}
	all := make([]string, len(hosts)+1) // a blank behind it says that they are a list
	for i, host := range hosts {
		all[i] = cmp.Or(t.Own[host], t.At).String()
	}
	return strings.Join(all, " ")
}

// headArgs are fields and values of a task, but for its spec.
func headArgs(t jobs.Task, hosts, chunks int) []any {
	args := []any{"total", hosts, "chunks", chunks,
		"timeout", t.Spec.Timeout.Microseconds(), "expire", t.Spec.Expire.Microseconds(),
		"at", t.At.String(), "inventory", t.Spec.Inventory, "repeatable", digit(t.Spec.Repeatable),
		"operator", t.Spec.Operator, "priority", string(t.Spec.Priority)}
	if t.Guarded {
		args = append(args, "guard", guard(t))
	}
	if len(t.Own) > 0 {
		args = append(args, "own", "1")
	}
	return append(args, ruleArgs(t.Spec.Rollout)...)
}

// guard is what exclude.lua reads: whether the task disturbs its hosts, and the
// limits that its runbook names, and the semaphore of its own rule.
func guard(t jobs.Task) string {
	words := []string{"-"}
	if t.Spec.Disruptive {
		words[0] = "d"
		if t.Spec.ProveGroup {
			words[0] = "p"
		}
	}
	words = append(words, t.Spec.Needs...)
	if t.Spec.Rollout != nil {
		words = append(words, rulePrefix+string(t.ID))
	}
	return strings.Join(words, " ")
}

// digit is a flag as the scripts read it.
func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func putAnswer(v []any, zone string) error {
	r := reader{v: v}
	switch status := r.text(); status {
	case "ok", "committed":
		return r.err
	case "conflict":
		return ErrConflict
	case "cancelled":
		return ErrCancelled
	default:
		return fmt.Errorf("zone %s answers %q to a put: submit again", zone, status)
	}
}

// calls are n calls of one script.
type calls struct {
	*script
	n      int
	args   func(int) []any
	answer func(int, []any) error // nil: nobody reads the answers
}

// pipeline makes many calls, some of them under way at once.
func (q *Queue) pipeline(ctx context.Context, zone string, c calls) error {
	keys := []string{zoneKey(zone, "zone", "")}
	for from := 0; from < c.n; from += pipeMax {
		to := min(from+pipeMax, c.n)
		node, err := q.enter(ctx, zone)
		if err != nil {
			return err
		}
		// The first call of this script loaded it; a restart in between shows as
		// an error, and the same submit again goes on here.
		add := func(p redis.Pipeliner) {
			for i := from; i < to; i++ {
				c.EvalSha(ctx, p, keys, c.args(i)...)
			}
		}
		cmds, acked, err := q.send(ctx, node, keys, add)
		if err != nil {
			q.elsewhere(ctx)
			return q.say(c.name, err)
		}
		for i, cmd := range cmds {
			v, err := cmd.(*redis.Cmd).Slice()
			if err != nil {
				return q.say(c.name, err)
			}
			if c.answer == nil {
				continue
			}
			if err := c.answer(from+i, v); err != nil {
				return err
			}
		}
		if why := q.fewer(acked); why != "" {
			return fmt.Errorf("%w: %s a part of the jobs: submit again", ErrFewer, why)
		}
	}
	return nil
}

// send sends calls in one go; with redis.durable it waits for the replicas.
func (q *Queue) send(ctx context.Context, c *redis.Client, keys []string,
	add func(redis.Pipeliner)) (cmds []redis.Cmder, acked int, err error) {
	if q.cfg.Durable > 0 {
		return q.lasting(ctx, c, keys, add)
	}
	cmds, err = c.Pipelined(ctx, func(p redis.Pipeliner) error {
		add(p)
		return nil
	})
	return cmds, 0, err
}

// Commit lets the jobs of a task run that was put as a whole, and goes on with
// a commit that somebody left half way. Committing twice does no harm.
func (q *Queue) Commit(ctx context.Context, zone string, id jobs.TaskID) error {
	args := []any{string(id), "commit", chunkMax, ""}
	left := 0
	read := func(v []any) error {
		r := reader{v: v}
		status := r.text()
		left = r.int()
		switch {
		case r.err != nil:
			return r.err
		case status == "ok", status == "ended":
			return nil
		case status == "cancelled":
			return ErrCancelled
		case status == "incomplete":
			return fmt.Errorf("zone %s has %d jobs of the task, not all: submit again", zone, left)
		default:
			return fmt.Errorf("zone %s does not know the task: submit again", zone)
		}
	}
	r, err := q.script(ctx, scripts.move, zone, args...)
	if err != nil {
		return err
	}
	if err := read(r.v); err != nil {
		return err
	}
	if why := q.fewer(r.acked); why != "" {
		return fmt.Errorf("%w: the task is committed and runs, but %s it, so a failover now may forget "+
			"it: submit again, until it is accepted", ErrFewer, why)
	}
	if left == 0 {
		return nil
	}
	return q.pipeline(ctx, zone, calls{script: scripts.move, n: (left + chunkMax - 1) / chunkMax,
		args:   func(int) []any { return args },
		answer: func(_ int, v []any) error { return read(v) }})
}

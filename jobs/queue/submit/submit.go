package submit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Submits puts tasks into the queue.
type Submits struct {
	c       *queue.Conn
	retries *Retries
	cancels *Cancels
}

// NewSubmits returns the submits behind a connection.
func NewSubmits(c *queue.Conn, tasks Tasks) *Submits {
	return &Submits{c, NewRetries(c, tasks), NewCancels(c)}
}

const (
	tasksKept = 10000
	keyKept   = 100 // tasks of one key
)

// Submit puts a task with its hosts, by zone, into the queue and commits it. No job runs before all
// are there. If it fails, the same submit with the same task id completes it; a submit that is
// never completed expires after a day. progress, which may be nil, receives the number of jobs that
// are put. A task that does jobs of another again is put only if no third task does them; see
// ErrRetried.
func (q *Submits) Submit(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
	if err := q.put(ctx, t, hosts, progress); err != nil {
		return err
	}
	return q.commitWhole(ctx, t, slices.Sorted(maps.Keys(hosts)))
}

// put puts a task with all its hosts. No job of it runs yet.
func (q *Submits) put(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
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
	return nil
}

// commitWhole commits a task that was put, in all its zones, and ends what it supersedes.
func (q *Submits) commitWhole(ctx context.Context, t jobs.Task, zones []string) error {
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
func (q *Submits) putAll(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
	zones := slices.Sorted(maps.Keys(hosts))
	done, indexed := 0, false
	for _, z := range zones {
		err := q.putZone(ctx, z, t, hosts[z], func(n int) error {
			done += n
			if !indexed {
				// Only now is it certain that no other task has the id.
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

// supersede ends the waiting jobs of older tasks with the same key on the hosts that the new task
// has as well.
func (q *Submits) supersede(ctx context.Context, t jobs.Task) error {
	if t.Spec.Supersedes == "" {
		return nil
	}
	key := keys.Hub("key:", t.Spec.Supersedes)
	older, err := q.c.Redis().ZRangeByScore(ctx, key, &redis.ZRangeBy{Min: "-inf",
		Max: "(" + t.Spec.Created.String()}).Result()
	if err != nil {
		return q.c.Say("supersede", err)
	}
	note := fmt.Sprintf("superseded by task %s of %s", t.ID, t.Spec.Operator)
	for _, id := range older {
		end := ending{jobs.TaskID(id), jobs.Superseded, note, string(t.ID)}
		if _, err := q.cancels.endAll(ctx, end); err != nil && !errors.Is(err, queue.ErrNotFound) {
			return err
		}
	}
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.ZAdd(ctx, key, redis.Z{Score: float64(t.Spec.Created), Member: string(t.ID)})
		p.ZRemRangeByRank(ctx, key, 0, -keyKept-1)
		p.Expire(ctx, key, codec.TaskKeep)
		return nil
	})
	return q.c.Say("supersede", err)
}

// commitAll commits a task in all its zones. From its first commit on the task is on a list, so
// that another server completes the commits if this one dies.
func (q *Submits) commitAll(ctx context.Context, id jobs.TaskID, zones []string) error {
	list := keys.Hub("commits", "")
	if err := q.c.Redis().SAdd(ctx, list, string(id)).Err(); err != nil {
		return q.c.Say("commit", err)
	}
	for _, z := range zones {
		if err := q.Commit(ctx, z, id); err != nil {
			return err
		}
	}
	return q.c.Say("commit", q.c.Redis().SRem(ctx, list, string(id)).Err())
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

// index stores the description of a task for all its zones, so that lists find it even if the
// submitter dies now.
func (q *Submits) index(ctx context.Context, t jobs.Task, zones []string) error {
	s := t.Spec
	rollout, err := indexed(s.Rollout)
	if err != nil {
		return err
	}
	ran, err := writeRan(s.Ran)
	if err != nil {
		return err
	}
	line, err := codec.EventLine(ordered(t))
	if err != nil {
		return err
	}
	_, err = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SAdd(ctx, keys.Hub("zones", ""), codec.Anys(zones)...)
		p.HSet(ctx, keys.Hub("task:", string(t.ID)), "runbook", s.Runbook, "on", s.On,
			"operator", s.Operator, "proven", s.Proven, "inventory", s.Inventory,
			"created", s.Created.String(), "zones", strings.Join(zones, ","),
			"disruptive", s.Disruptive, "prove_group", s.ProveGroup,
			"key", s.Supersedes, "retry_of", string(s.RetryOf),
			"reason", s.Reason, "priority", string(s.Priority), "schedule", s.Schedule,
			"tick", s.Tick.String(), "rollout", rollout, "gates", s.Gates, "chain", string(s.Chain),
			"ran", ran)
		if t.Trace != "" { // a commit that is repeated has none
			p.HSet(ctx, keys.Hub("task:", string(t.ID)), "trace", t.Trace)
		}
		p.Expire(ctx, keys.Hub("task:", string(t.ID)), codec.TaskKeep)
		p.ZAddNX(ctx, keys.Hub("tasks", ""), redis.Z{Score: float64(s.Created), Member: string(t.ID)})
		p.ZRemRangeByRank(ctx, keys.Hub("tasks", ""), 0, -tasksKept-1)
		p.XAdd(ctx, &redis.XAddArgs{Stream: keys.Zone(zones[0], "events", ""),
			MaxLen: codec.ZoneEventsMax,
			Approx: true, Values: []any{"e", line}})
		return nil
	})
	return q.c.Say("submit", err)
}

// fingerprint is equal for two submits of one id if they ask for the same; their times do not
// count.
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

func (q *Submits) putZone(ctx context.Context, zone string, t jobs.Task, hosts []string,
	put func(int) error) error {
	print, spec, err := fingerprint(t, hosts)
	if err != nil {
		return err
	}
	t.Own = inTurns(t, hosts)
	chunks := slices.Collect(slices.Chunk(hosts, codec.HostsMax))
	args := func(i int) []any {
		at := codec.Times(t, chunks[i])
		if r := t.Spec.Rollout; r != nil && len(r.Waves) > 0 {
			at = codec.WaveScores(r.Waves, i*codec.HostsMax, len(chunks[i]))
		}
		all := []any{string(t.ID), print, i, at, strings.Join(chunks[i], "\n")}
		return append(all, codec.Anys(beside(t.Beside[zone], i, len(chunks)))...)
	}
	first := append(args(0), codec.HeadArgs(t, len(hosts), len(chunks))...)
	first = append(first, "spec", string(spec))
	r, err := q.c.Script(ctx, queue.Scripts.Put, zone, first...)
	if err != nil {
		return err
	}
	if err := putAnswer(r.Left, zone); err != nil {
		return err
	}
	q.c.Hand.Learn(zone, t.Spec.Timeout)
	if why := q.c.Config().Fewer(r.Acked); why != "" {
		return fmt.Errorf("%w: %s the jobs, so they were not committed and none runs: submit again",
			queue.ErrFewer, why)
	}
	if err := put(len(chunks[0])); err != nil {
		return err
	}
	return q.c.Pipeline(ctx, zone, queue.Calls{Script: queue.Scripts.Put, N: len(chunks) - 1,
		Args: func(i int) []any { return args(i + 1) },
		Answer: func(i int, v []any) error {
			if err := putAnswer(v, zone); err != nil {
				return err
			}
			return put(len(chunks[i+1]))
		}})
}

// beside returns the part of a list of names and texts that goes with a chunk: two of them each.
// Some shares of an order are less than a chunk, so this keeps each call small.
func beside(pairs []string, chunk, chunks int) []string {
	const each = 2 * 2 // names and texts
	from := min(chunk*each, len(pairs))
	if chunk == chunks-1 {
		return pairs[from:]
	}
	return pairs[from:min(from+each, len(pairs))]
}

func putAnswer(v []any, zone string) error {
	r := codec.Reader{Left: v}
	switch status := r.Text(); status {
	case "ok", "committed":
		return r.Err
	case "conflict":
		return queue.ErrConflict
	case "cancelled":
		return queue.ErrCancelled
	default:
		return fmt.Errorf("zone %s answers %q to a put: submit again", zone, status)
	}
}

// Commit lets the jobs of a completely put task run, and completes a commit that was left half
// done. Committing twice does no harm.
func (q *Submits) Commit(ctx context.Context, zone string, id jobs.TaskID) error {
	args := []any{string(id), "commit", codec.ChunkMax, ""}
	left := 0
	read := func(v []any) error {
		r := codec.Reader{Left: v}
		status := r.Text()
		left = r.Int()
		switch {
		case r.Err != nil:
			return r.Err
		case status == "ok", status == "ended":
			return nil
		case status == "cancelled":
			return queue.ErrCancelled
		case status == "incomplete":
			return fmt.Errorf("zone %s has %d jobs of the task, not all: submit again", zone, left)
		default:
			return fmt.Errorf("zone %s does not know the task: submit again", zone)
		}
	}
	r, err := q.c.Script(ctx, queue.Scripts.Move, zone, args...)
	if err != nil {
		return err
	}
	if err := read(r.Left); err != nil {
		return err
	}
	if why := q.c.Config().Fewer(r.Acked); why != "" {
		return fmt.Errorf("%w: the task is committed and runs, but %s it, so a failover now may forget "+
			"it: submit again, until it is accepted", queue.ErrFewer, why)
	}
	if left == 0 {
		return nil
	}
	return q.c.Pipeline(ctx, zone, queue.Calls{Script: queue.Scripts.Move,
		N:      (left + codec.ChunkMax - 1) / codec.ChunkMax,
		Args:   func(int) []any { return args },
		Answer: func(_ int, v []any) error { return read(v) }})
}

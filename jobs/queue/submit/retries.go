package submit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// Tasks reads tasks and their jobs.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
	EachJob(ctx context.Context, id jobs.TaskID, from, most int, f func([]jobs.JobInfo) error) error
}

// Retries knows which task does a job again.
type Retries struct {
	c     *queue.Conn
	tasks Tasks
}

// NewRetries returns the retries behind a connection.
func NewRetries(c *queue.Conn, tasks Tasks) *Retries { return &Retries{c, tasks} }

// claimHold is the time for which an unsealed claim keeps other retries out: most submits take
// less, and a submit whose server died starts nothing.
const claimHold = 10 * time.Second

// claim names the operator of a retry. It is stored in the field claimMark + the id of its task.
type claim struct {
	Operator string      `json:"operator"`
	Proven   bool        `json:"proven,omitempty"`
	At       jobs.Micros `json:"at"`
	Sealed   bool        `json:"sealed,omitempty"`
}

// claimMark begins the fields that name no host.
const claimMark = "~"

func retriedKey(of jobs.TaskID) string { return keys.Hub("retried:", string(of)) }

// claims holds the fields of retried:<task> that were read; a host without a claim has none.
type claims map[string]string

// by returns the claim of a task.
func (c claims) by(id jobs.TaskID) (claim, bool) {
	var a claim
	text, ok := c[claimMark+string(id)]
	return a, ok && json.Unmarshal([]byte(text), &a) == nil
}

// hashReader reads claims: a handle or a transaction.
type hashReader interface {
	HMGet(ctx context.Context, key string, fields ...string) *redis.SliceCmd
}

// readClaims reads the claims on hosts, and the tasks that made them.
func readClaims(ctx context.Context, from hashReader, key string, hosts []string) (claims, error) {
	c := claims{}
	read := func(fields []string) error {
		for chunk := range slices.Chunk(fields, codec.ChunkMax) {
			v, err := from.HMGet(ctx, key, chunk...).Result()
			if err != nil {
				return err
			}
			for i, field := range chunk {
				if text := codec.TextOf(v, i); text != "" {
					c[field] = text
				}
			}
		}
		return nil
	}
	if err := read(hosts); err != nil {
		return nil, err
	}
	var marks []string
	for _, host := range hosts {
		if id, ok := c[host]; ok && !strings.HasPrefix(host, claimMark) {
			marks = append(marks, claimMark+id)
		}
	}
	slices.Sort(marks)
	return c, read(slices.Compact(marks))
}

// Retries returns the tasks that do jobs of a task on some hosts again. It leaves out by, the task
// that asks, and tasks that do no job there: Redis does not know the task, it was never or will
// never be committed, or an order ended its job before it began.
func (q *Retries) Retries(ctx context.Context, of, by jobs.TaskID, hosts []string) ([]jobs.Again,
	error) {
	c, err := readClaims(ctx, q.c.Redis(), retriedKey(of), hosts)
	if err != nil {
		return nil, q.c.Say("retries", err)
	}
	return q.standing(ctx, of, by, hosts, c)
}

// standing returns the claims of other tasks that count, the earliest first.
func (q *Retries) standing(ctx context.Context, of, by jobs.TaskID, hosts []string, c claims) (
	[]jobs.Again, error) {
	if len(c) == 0 {
		return nil, nil
	}
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return nil, err
	}
	has := map[jobs.TaskID][]string{}
	for _, host := range hosts {
		if id := jobs.TaskID(c[host]); id != "" && id != by {
			has[id] = append(has[id], host)
		}
	}
	var list []jobs.Again
	for id, hosts := range has {
		a, ok := c.by(id)
		if !ok {
			continue
		}
		again := jobs.Again{Task: id, Operator: a.Operator, Proven: a.Proven, At: jobs.TimeOf(a.At),
			Hosts: hosts, Outcomes: jobs.Counts{}}
		switch {
		case a.Sealed:
			err = q.lookAgain(ctx, of, &again, now)
		case jobs.MicrosOf(now).Sub(a.At).Abs() < claimHold: // or later than now: the clock went back
			again.Coming, again.Open = true, len(hosts)
		default:
			again.Hosts = nil
		}
		if err != nil {
			return nil, err
		}
		if len(again.Hosts) > 0 {
			list = append(list, again)
		}
	}
	slices.SortFunc(list, func(a, b jobs.Again) int {
		return cmp.Or(a.At.Compare(b.At.Time), strings.Compare(string(a.Task), string(b.Task)))
	})
	return list, nil
}

// lookAgain keeps only the hosts on which a task does or did the jobs, and counts their outcomes.
func (q *Retries) lookAgain(ctx context.Context, of jobs.TaskID, a *jobs.Again,
	now time.Time) error {
	hosts := a.Hosts
	a.Hosts = nil
	// This comes first: a task that is no longer on the list is committed by the time of the next
	// reading.
	listed, err := q.c.Redis().SIsMember(ctx, keys.Hub("commits", ""), string(a.Task)).Result()
	if err != nil {
		return q.c.Say("retries", err)
	}
	t, err := q.tasks.Task(ctx, a.Task)
	if errors.Is(err, queue.ErrNotFound) || err == nil && (t.RetryOf != of || t.CancelledInSubmit) {
		return nil
	}
	if err != nil {
		return err
	}
	is := map[string]jobs.JobInfo{}
	for _, host := range hosts {
		is[host] = jobs.JobInfo{}
	}
	err = q.tasks.EachJob(ctx, a.Task, 0, codec.ChunkMax, func(list []jobs.JobInfo) error {
		for _, j := range list {
			if _, asked := is[j.Host]; asked {
				is[j.Host] = j
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Jobs are kept for a day after their end, so a job that vanished earlier was lost.
	old := now.Sub(t.Submitted.Time) >= codec.HeldKeep
	comes := listed || t.State != jobs.TaskSubmitting
	for _, host := range hosts {
		switch j := is[host]; {
		case j.State == "" && !old, j.State == jobs.Held && !comes, j.NeverBegan():
			continue
		case j.State == jobs.Ended:
			a.Outcomes[j.Outcome]++
		case j.State != "":
			a.Open++
		}
		a.Hosts = append(a.Hosts, host)
	}
	return nil
}

// claim takes the hosts of a retry for it, before anything of it is put. It takes over claims that
// no longer count; with t.Again also those that do.
func (q *Retries) claim(ctx context.Context, t jobs.Task, hosts []string) error {
	keep, err := q.claimKeep(ctx, t.Spec.RetryOf)
	if err != nil {
		return err
	}
	for again := true; again; {
		c, err := readClaims(ctx, q.c.Redis(), retriedKey(t.Spec.RetryOf), hosts)
		if err != nil {
			return q.c.Say("retry", err)
		}
		others, err := q.standing(ctx, t.Spec.RetryOf, t.ID, hosts, c)
		if err != nil {
			return err
		}
		for _, a := range others {
			if a.Coming || !t.Again {
				return fmt.Errorf("%d of %d: %w, %s of %s", len(a.Hosts), len(hosts), queue.ErrRetried, a.Task,
					a.Operator)
			}
		}
		again = false
		for chunk := range slices.Chunk(hosts, codec.ChunkMax) {
			changed, err := q.claimChunk(ctx, t, chunk, taking{c, keep})
			if err != nil {
				return q.c.Say("retry", err)
			}
			again = again || changed
		}
	}
	return nil
}

// claimKeep returns the lifetime of claims on hosts of a task: the lifetime of its jobs.
func (q *Retries) claimKeep(ctx context.Context, of jobs.TaskID) (time.Duration, error) {
	t, err := q.tasks.Task(ctx, of)
	switch {
	case errors.Is(err, queue.ErrNotFound), err == nil && t.State == jobs.TaskEnded:
		return codec.HeldKeep + time.Hour, nil
	}
	return codec.TaskKeep, err
}

// taking holds the claims as they were read before hosts are taken, and the lifetime of new ones.
type taking struct {
	seen claims
	keep time.Duration
}

// claimChunk takes some hosts, unless one of their claims has changed since it was read.
func (q *Retries) claimChunk(ctx context.Context, t jobs.Task, hosts []string, from taking) (
	changed bool, err error) {
	key := retriedKey(t.Spec.RetryOf)
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return false, err
	}
	err = q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
		is, err := readClaims(ctx, tx, key, append(hosts, claimMark+string(t.ID)))
		if err != nil {
			return err
		}
		set := []any{}
		for _, host := range hosts {
			id := is[host]
			if id == string(t.ID) {
				continue
			}
			if id != from.seen[host] || is[claimMark+id] != from.seen[claimMark+id] {
				changed = true
				return nil
			}
			set = append(set, host, string(t.ID))
		}
		if own, ok := is.by(t.ID); !ok || !own.Sealed {
			text, err := json.Marshal(claim{Operator: t.Spec.Operator, Proven: t.Spec.Proven,
				At: jobs.MicrosOf(now)})
			if err != nil {
				return err
			}
			set = append(set, claimMark+string(t.ID), string(text))
		}
		if len(set) == 0 {
			return nil
		}
		_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.HSet(ctx, key, set...)
			p.Expire(ctx, key, from.keep)
			return nil
		})
		return err
	}, key)
	if errors.Is(err, redis.TxFailedErr) {
		return true, nil
	}
	return changed, err
}

// seal makes the claim of a retry final, if it still has all of its hosts: from now on this server
// or another will commit the task.
func (q *Retries) seal(ctx context.Context, t jobs.Task, hosts []string) error {
	key, mark := retriedKey(t.Spec.RetryOf), claimMark+string(t.ID)
	now, err := q.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	for again := true; again; {
		err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			is, err := readClaims(ctx, tx, key, append([]string{mark}, hosts...))
			if err != nil {
				return err
			}
			own, ok := is.by(t.ID)
			lost := func(host string) bool { return is[host] != string(t.ID) }
			if i := slices.IndexFunc(hosts, lost); !ok || i >= 0 {
				return fmt.Errorf("it was not all put in time: %w", queue.ErrRetried)
			}
			// A server that read the claim before finds it changed.
			own.Sealed, own.At = true, jobs.MicrosOf(now)
			text, err := json.Marshal(own)
			if err != nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HSet(ctx, key, mark, text)
				p.SAdd(ctx, keys.Hub("commits", ""), string(t.ID))
				return nil
			})
			return err
		}, key)
		if again = errors.Is(err, redis.TxFailedErr); !again && err != nil {
			return q.c.Say("retry", err)
		}
	}
	return nil
}

// putRetry puts a task that does jobs of another again, if no other task has its hosts.
func (q *Submits) putRetry(ctx context.Context, t jobs.Task, hosts map[string][]string,
	progress func(int)) error {
	var names []string
	for _, list := range hosts {
		names = append(names, list...)
	}
	slices.Sort(names) // all retries take hosts in this order, so no two wait for each other
	err := q.retries.claim(ctx, t, names)
	if err == nil {
		err = q.putAll(ctx, t, hosts, progress)
	}
	if err == nil {
		err = q.retries.seal(ctx, t, names)
	}
	if errors.Is(err, queue.ErrRetried) || errors.Is(err, queue.ErrConflict) || errors.Is(err,
		queue.ErrCancelled) {
		q.retries.unclaim(ctx, t)
	}
	return err
}

// unclaim gives up the claim of a retry that will not be put; a sealed claim stays. The fields of
// its hosts stay too, because there may be very many: they name a task without a claim, so nobody
// has them. If this call fails, the claim keeps others out no longer than claimHold.
func (q *Retries) unclaim(ctx context.Context, t jobs.Task) {
	key, mark := retriedKey(t.Spec.RetryOf), claimMark+string(t.ID)
	for again := true; again; {
		err := q.c.Redis().Watch(ctx, func(tx *redis.Tx) error {
			is, err := readClaims(ctx, tx, key, []string{mark})
			if own, ok := is.by(t.ID); err != nil || !ok || own.Sealed {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HDel(ctx, key, mark)
				return nil
			})
			return err
		}, key)
		again = errors.Is(err, redis.TxFailedErr)
	}
}

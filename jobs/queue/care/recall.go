package care

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
)

// A Debt says that a zone with history must ask history which jobs have ended, before anything
// starts again in a Redis that may have forgotten it.
type Debt struct {
	Zone     string
	Recorded bool   // the zone knows that it has a history
	Owed     string // since when, in µs, and why; empty: it owes nothing
}

// Debts returns the debt of each zone that exists. If some zones cannot be read, it returns an
// error that names each of them, together with the debts of the others.
func (q *History) Debts(ctx context.Context, zones []string) ([]Debt, error) {
	found := make([]*redis.SliceCmd, len(zones))
	// Exec returns only the first error; each command has its own.
	_, _ = q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, zone := range zones {
			found[i] = p.HMGet(ctx, keys.Zone(zone, "zone", ""), "run", "recorded", "owed")
		}
		return nil
	})
	var out []Debt
	var errs []error
	for i, zone := range zones {
		v, err := found[i].Result()
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("zone %s: %w", zone, q.c.Say("zones", err)))
		case codec.TextOf(v, 0) != "":
			out = append(out, Debt{zone, codec.TextOf(v, 1) == "1", codec.TextOf(v, 2)})
		}
	}
	return out, errors.Join(errs...)
}

// KeepHistory records that a zone has a history. With a reason, nothing starts in the zone until
// history was asked, as after a restart of Redis.
func (q *History) KeepHistory(ctx context.Context, zone, why string) error {
	_, err := q.recall(ctx, zone, "keep", codec.OneLine(why))
	return err
}

// Settle ends the debt of a zone, as it was read: history was asked about all open tasks. ErrStale:
// the zone has a debt for another reason by now.
func (q *History) Settle(ctx context.Context, d Debt) error {
	_, err := q.recall(ctx, d.Zone, "done", d.Owed)
	return err
}

// recallMax bounds the jobs of one call of recall.
const recallMax = 100

// A Past is what history knows about jobs of a task: their ends or, for a job in the state lost,
// that an attempt began.
type Past struct {
	Task  jobs.TaskID
	Heard string // id of the last entry of the zone's events that history had; empty: it had none
	Jobs  []jobs.JobInfo
}

// Recall gives a past to the zone. A job that has not ended in Redis adopts it. Recall returns
// ErrStale as Settle does, and also if the zone's events mention a job that history has not read
// yet.
func (q *History) Recall(ctx context.Context, d Debt, p Past) (jobs.Recalled, error) {
	all := jobs.Recalled{}
	for chunk := range slices.Chunk(p.Jobs, recallMax) {
		args := []any{string(p.Task), p.Heard}
		for _, j := range chunk {
			args = append(args, pastArgs(j)...)
		}
		r, err := q.recall(ctx, d.Zone, "jobs", d.Owed, args...)
		if err != nil {
			return all, err
		}
		all.Ended, all.Lost = all.Ended+r.Ended, all.Lost+r.Lost
	}
	return all, nil
}

func pastArgs(j jobs.JobInfo) []any {
	exit := ""
	if j.ExitCode != nil {
		exit = strconv.Itoa(*j.ExitCode)
	}
	return []any{j.Host, string(j.Outcome), string(j.Class), exit, j.Error, j.Note, j.Attempt,
		strings.Join(strings.Fields(j.Node), ""), microsOf(j.Started), microsOf(j.Finished)}
}

// microsOf encodes an instant for scripts; 0: it is not set.
func microsOf(t jobs.Time) string {
	if t.IsZero() {
		return "0"
	}
	return jobs.MicrosOf(t.Time).String()
}

func (q *History) recall(ctx context.Context, zone, verb, owed string, args ...any) (
	out jobs.Recalled, err error) {
	r, err := q.c.Script(ctx, queue.ScriptRecall, zone, append([]any{verb, owed}, args...)...)
	if err != nil {
		return out, err
	}
	status := r.Text()
	out.Ended, out.Lost = r.Int(), r.Int()
	switch {
	case r.Err != nil:
		return out, fmt.Errorf("recall in zone %s: %w", zone, r.Err)
	case status == "stale" || status == "behind":
		return out, fmt.Errorf("recall in zone %s: it is %s: %w", zone, status, queue.ErrStale)
	case status != "ok":
		return out, fmt.Errorf("recall in zone %s: %w", zone, errors.New("it answered "+status))
	}
	return out, nil
}

// Unsettled returns the tasks with jobs in a zone that have not ended, as far as Redis knows: tasks
// that run, and tasks that are not committed.
func (q *History) Unsettled(ctx context.Context, zone string) ([]jobs.TaskID, error) {
	var open *redis.StringSliceCmd
	var all *redis.StringSliceCmd
	_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
		open = p.ZRange(ctx, keys.Zone(zone, "open", ""), 0, -1)
		all = p.ZRange(ctx, keys.Hub("tasks", ""), 0, -1)
		return nil
	})
	if err != nil {
		return nil, q.c.Say("tasks", err)
	}
	list := append(open.Val(), all.Val()...)
	slices.Sort(list)
	var out []jobs.TaskID
	for chunk := range slices.Chunk(slices.Compact(list), codec.ChunkMax) {
		found := make([]*redis.SliceCmd, len(chunk))
		_, err := q.c.Redis().Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, id := range chunk {
				found[i] = p.HMGet(ctx, keys.Zone(zone, "task:", id), "total", "done")
			}
			return nil
		})
		if err != nil {
			return nil, q.c.Say("tasks", err)
		}
		for i, id := range chunk {
			total, _ := strconv.Atoi(codec.TextOf(found[i].Val(), 0))
			done, _ := strconv.Atoi(codec.TextOf(found[i].Val(), 1))
			if done < total {
				out = append(out, jobs.TaskID(id))
			}
		}
	}
	return out, nil
}

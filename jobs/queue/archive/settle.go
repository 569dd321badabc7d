package archive

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/care"
	"muster/jobs/queue/codec"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/nodes"
	"muster/jobs/queue/read"
)

// Known says which jobs of a task have ended, by what else is known than Redis.
type Known func(ctx context.Context, id jobs.TaskID, f func([]jobs.JobInfo) error) error

// Settled says what became of work that was open at the time of the copy.
type Settled struct {
	Ended     int // jobs whose end was known
	Unknown   int // jobs that ended unknown
	Chains    int // that were stopped
	Schedules int // that continue with their next tick
}

// Enter begins a new epoch in each zone. With a history, nothing starts before that was asked which
// jobs have ended.
func (f *Filler) Enter(ctx context.Context, history bool) error {
	account := care.NewHistory(f.a.c)
	for _, zone := range f.zones() {
		if err := f.a.c.Enter(ctx, zone); err != nil {
			return err
		}
		if history {
			if err := account.KeepHistory(ctx, zone, "Redis was restored from a backup"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *Filler) zones() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.names)),
		func(zone string) bool { return zone == keys.HubZone })
}

// EndOpen ends all jobs that had not ended at the time of the copy: as it is known, or else
// unknown, because each of them may have run since.
func (f *Filler) EndOpen(ctx context.Context, made time.Time, known Known) (s Settled, err error) {
	for _, zone := range f.zones() {
		if err := f.endZone(ctx, zone, made, known, &s); err != nil {
			return s, fmt.Errorf("zone %s: %w", zone, err)
		}
	}
	// Nothing is left to commit, and what waits for signatures has ended as well.
	err = f.a.c.Redis().Del(ctx, keys.Hub("commits", "")).Err()
	if err == nil {
		err = f.a.c.Redis().Del(ctx, keys.Hub("signing", "")).Err()
	}
	return s, f.a.c.Say("commits", err)
}

func (f *Filler) endZone(ctx context.Context, zone string, made time.Time, known Known,
	s *Settled) error {
	e := ending{f.a, zone, care.NewHistory(f.a.c), care.Debt{}, made, s}
	debts, err := e.account.Debts(ctx, []string{zone})
	if err != nil {
		return err
	}
	if len(debts) != 1 {
		return fmt.Errorf("it is missing")
	}
	e.debt = debts[0]
	for _, id := range f.tasks[zone] {
		open, err := e.open(ctx, id)
		if err == nil && open {
			err = e.task(ctx, id, known)
		}
		if err != nil {
			return fmt.Errorf("task %s: %w", id, err)
		}
	}
	return nil
}

// ending ends the jobs of a zone.
type ending struct {
	a       Archive
	zone    string
	account *care.History
	debt    care.Debt
	made    time.Time
	s       *Settled
}

// open reports whether a task has jobs that have not ended.
func (e ending) open(ctx context.Context, id jobs.TaskID) (bool, error) {
	v, err := e.a.c.Redis().HMGet(ctx, keys.Zone(e.zone, "task:", string(id)), "total",
		"done").Result()
	if err != nil {
		return false, e.a.c.Say("task", err)
	}
	total, _ := strconv.Atoi(codec.TextOf(v, 0))
	done, _ := strconv.Atoi(codec.TextOf(v, 1))
	return done < total, nil
}

func (e ending) task(ctx context.Context, id jobs.TaskID, known Known) error {
	recall := func(list []jobs.JobInfo) (int, error) {
		n, err := e.account.Recall(ctx, e.debt, care.Past{Task: id, Jobs: list})
		return n.Ended, err
	}
	err := known(ctx, id, func(list []jobs.JobInfo) error {
		n, err := recall(slices.DeleteFunc(slices.Clone(list),
			func(j jobs.JobInfo) bool { return j.Outcome == "" }))
		e.s.Ended += n
		return err
	})
	if err != nil {
		return err
	}
	tasks := read.NewTasks(e.a.c, nodes.New(e.a.c), e.account)
	return e.a.c.Places.EachChunk(ctx, e.zone, id, 0, func(hosts []string) error {
		for some := range slices.Chunk(hosts, codec.ChunkMax) {
			list, err := tasks.JobsOn(ctx, e.zone, id, some)
			if err != nil {
				return err
			}
			var open []jobs.JobInfo
			for _, j := range list {
				if j.State != jobs.Ended {
					open = append(open, e.unknown(j))
				}
			}
			n, err := recall(open)
			if e.s.Unknown += n; err != nil {
				return err
			}
		}
		return nil
	})
}

// unknown returns the end of a job of which nothing is known since the copy.
func (e ending) unknown(j jobs.JobInfo) jobs.JobInfo {
	what := "had not begun: whether it has begun since"
	switch {
	case j.State == jobs.Running:
		what = "was in hand: how it has ended since"
	case j.Attempt > 0:
		what = "had begun, and waited: what it has done since"
	}
	j.Outcome, j.Finished = jobs.Unknown, jobs.Time{Time: time.Now()}
	j.Error = fmt.Sprintf("Redis was restored from a backup of %s, when this job %s is not known",
		e.made.UTC().Format(time.RFC3339), what)
	return j
}

// StopFollowing stops what makes new tasks by itself and may have made them since the copy: chains,
// and ticks of schedules that were missed.
func (f *Filler) StopFollowing(ctx context.Context, made time.Time, s *Settled) error {
	chains := hub.NewChains(f.a.c)
	ids, err := chains.Chains(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		why := fmt.Sprintf("Redis was restored from a backup of %s: what the chain has done since is "+
			"not known", made.UTC().Format(time.RFC3339))
		if err := chains.NoteChain(ctx, id, jobs.ChainOrders{Broken: why}); err != nil {
			return err
		}
	}
	now, err := f.a.c.Now(ctx, keys.HubZone)
	if err != nil {
		return err
	}
	names, err := f.a.c.Redis().HKeys(ctx, keys.Hub("schedules", "")).Result()
	if err != nil {
		return f.a.c.Say("schedules", err)
	}
	text, err := json.Marshal(jobs.Ticking{Last: jobs.Time{Time: now}})
	if err != nil {
		return err
	}
	_, err = f.a.c.Redis().TxPipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, keys.Hub("ticks", ""))
		for _, name := range names {
			p.HSet(ctx, keys.Hub("ticks", ""), name, text)
		}
		return nil
	})
	s.Chains, s.Schedules = len(ids), len(names)
	if err != nil {
		return f.a.c.Say("schedules", err)
	}
	return f.setAside(ctx, made)
}

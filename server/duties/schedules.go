package duties

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/windows"
)

// Schedules fires schedules for one term. It works with a copy of them: it alone writes ticks,
// and a stamp changes when an operator has changed a schedule.
type Schedules struct {
	Ticks  Ticks
	Book   ScheduleList
	Tasks  Tasks
	Past   PastTasks // nil: no history is kept
	Leads  Leads
	Intake Intake
	Term   Term
	Who    func() string // name of this server
	Log    hclog.Logger
	Now    func() time.Time

	stamp   string
	all     []*planned
	pending []*planned // with ticks that are to become tasks
}

// Ticks keeps account of the ticks that a leader fires.
type Ticks interface {
	ScheduleStamp(ctx context.Context) (string, time.Time, error)
	Tick(ctx context.Context, term int64, was hub.Schedule, to jobs.Ticking) (hub.Schedule, error)
	Abandon(ctx context.Context, id jobs.TaskID, of jobs.Terms, note string) (bool, error)
}

// ScheduleList has all schedules.
type ScheduleList interface {
	Schedules(ctx context.Context) ([]hub.Schedule, error)
}

// PastTasks are the tasks that history knows.
type PastTasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Leads says who has a duty.
type Leads interface {
	Lead(ctx context.Context, duty, who string, held int64) (hub.Term, error)
}

// A Term is the time for which this server has a duty.
type Term interface {
	Number() int64
	Trusted() bool
}

// Intake makes the tasks of ticks.
type Intake interface {
	// PlanTick plans the task of a tick with the inventory and the runbooks of this moment. put
	// submits it under an id, once; why is the reason if there can be no task.
	PlanTick(ctx context.Context, f Firing) (put func(context.Context, jobs.TaskID) error, why string,
		err error)
}

// A Firing is one tick of a schedule.
type Firing struct {
	Schedule hub.Schedule
	Tick     time.Time
	// Offset returns the delay of a host within the jitter of the schedule; nil: there is none.
	Offset func(host string) time.Duration
}

const (
	// fireEvery is the longest time between two rounds: an operator's change is noticed within
	// it.
	fireEvery = time.Second
	// fireLeast is the shortest time between two rounds.
	fireLeast = 5 * time.Millisecond
	// never is the delay of a schedule that has no tick ahead.
	never = 100 * 365 * 24 * time.Hour
)

// planned is a schedule with its times.
type planned struct {
	kept  hub.Schedule // as Redis has it
	times windows.Schedule
	due   time.Time // of the next decision
}

// Run fires the schedules until ctx is done. It returns queue.ErrDeposed when another server has
// the duty.
func (f *Schedules) Run(ctx context.Context) error {
	said := ""
	for {
		wait, err := f.RunOnce(ctx)
		trouble := ""
		if err != nil {
			trouble = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, queue.ErrDeposed):
			return err
		case trouble != "" && trouble != said:
			f.Log.Warn("schedules", "trouble", trouble)
		case trouble == "" && said != "":
			f.Log.Info("schedules", "trouble", "over")
		}
		said = trouble
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// RunOnce fires the ticks that are due, and returns the time until the next round. It includes
// ticks that an earlier leader left pending. First it decides all that is due, which is quick;
// then it makes tasks, of one schedule in any case and of the others for a second at the most: so
// it never decides a tick so late that it counts as missed.
func (f *Schedules) RunOnce(ctx context.Context) (time.Duration, error) {
	stamp, now, err := f.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return fireEvery, err
	}
	begun := f.Now()
	if f.all == nil || stamp != f.stamp {
		if err := f.reload(ctx, now); err != nil {
			return fireEvery, err
		}
		f.stamp = stamp
	}
	first, err := f.decide(ctx, now)
	wait := min(first.Sub(now), fireEvery)
	again := f.pending[:0]
	for i, p := range f.pending {
		if i > 0 && f.Now().Sub(begun) > fireEvery || errors.Is(err, queue.ErrDeposed) {
			again, wait = append(again, p), 0
			continue
		}
		if e := f.makeTasks(ctx, p); e != nil {
			again, err = append(again, p), errors.Join(err, e)
		} else if !p.due.After(now) {
			wait = 0 // it was pending before: what came due since is not decided yet
		}
	}
	f.pending = again
	if f.forgetStale(err) {
		err, wait = nil, 0
	}
	return max(wait-f.Now().Sub(begun), fireLeast), err
}

// forgetStale drops the copy if somebody has changed a schedule, and reports whether nothing else
// went wrong.
func (f *Schedules) forgetStale(err error) bool {
	if !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrNotFound) {
		return false
	}
	f.all, f.pending = nil, nil
	return !errors.Is(err, queue.ErrDeposed)
}

// reload reads all schedules. One whose ticks Redis has forgotten begins now.
func (f *Schedules) reload(ctx context.Context, now time.Time) error {
	list, err := f.Book.Schedules(ctx)
	if err != nil {
		return err
	}
	f.all, f.pending = make([]*planned, 0, len(list)), nil
	for _, one := range list {
		times, err := one.Entry.Schedule()
		if err != nil {
			f.Log.Error("schedule cannot be read, so it has no ticks", "schedule", one.Name, "error", err)
			continue
		}
		p := &planned{kept: one, times: times}
		if one.Forgotten() {
			f.Log.Warn("schedule: Redis has forgotten its last tick; it goes on from now",
				"schedule", one.Name)
			p.kept.Ticks.Last = jobs.Time{Time: now}
		}
		if len(p.kept.Ticks.Pending) > 0 {
			f.pending = append(f.pending, p)
		}
		f.all = append(f.all, p)
	}
	return nil
}

// decide writes down which ticks are to be fired, with the next one ahead, before any of them
// becomes a task. It returns the time of the next decision.
func (f *Schedules) decide(ctx context.Context, now time.Time) (first time.Time, err error) {
	first = now.Add(never)
	for _, p := range f.all {
		if !p.due.After(now) && (len(p.kept.Ticks.Pending) == 0 || !p.kept.Fires()) {
			if e := f.decideOne(ctx, p, now); e != nil {
				err = errors.Join(err, e)
				continue
			}
		}
		if p.due.Before(first) && p.due.After(now) {
			first = p.due
		}
	}
	return first, err
}

func (f *Schedules) decideOne(ctx context.Context, p *planned, now time.Time) error {
	before := len(p.kept.Ticks.Pending)
	to, changed := p.kept.Ticks.Advance(p.kept.Schedule, p.times, now)
	if changed || p.kept.Forgotten() {
		next, err := f.Ticks.Tick(ctx, f.Term.Number(), p.kept, to)
		if err != nil {
			return err
		}
		p.kept = next
		if to.Skipped > 0 {
			f.Log.Warn("schedule: ticks were missed and are not made up for", "schedule", p.kept.Name,
				"ticks", to.Skipped, "missed", p.kept.Missed)
		}
	}
	if before == 0 && len(to.Pending) > 0 {
		f.pending = append(f.pending, p)
	}
	p.due = to.Next.Time
	if p.due.IsZero() {
		p.due = now.Add(never)
	}
	return nil
}

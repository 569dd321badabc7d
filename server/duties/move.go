package duties

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/jobs/queue/submit"
	"muster/windows"
)

// Mover makes the appointments of waiting jobs fit what is agreed, if that has changed. Nothing
// rests on it: a job whose turn comes at a wrong time is deferred. But a job whose window was
// brought forward would miss it. It does no harm to do it twice.
type Mover struct {
	Tasks     Tasks
	Jobs      Jobs
	Moves     Moves
	Estimates Estimates
	Cancels   Cancels
	Schedules Schedule
	// Book returns what is agreed now, and the version of the timetable.
	Book  func(ctx context.Context) (version int64, book *windows.Book, err error)
	Stock func() (*fleet.Inventory, error) // the inventory in force
	Log   hclog.Logger
	Now   func() time.Time

	again time.Time // when to look once more, without another change; zero: not at all
}

// Moves makes new appointments of jobs that wait, and keeps up to which version of the timetable
// they were made.
type Moves interface {
	Appoint(ctx context.Context, zone string, id jobs.TaskID, moves []jobs.Move) (int, error)
	MovedFor(ctx context.Context) (int64, error)
	SetMovedFor(ctx context.Context, version int64) error
}

// Estimates are the usual durations of runbooks on hosts.
type Estimates interface {
	Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate, error)
}

// Schedule reads a schedule by its name.
type Schedule interface {
	Schedule(ctx context.Context, name string) (hub.Schedule, error)
}

// soon is the time before an appointment in which it stays as it is: the worker that takes the
// job asks again.
const soon = 2 * time.Second

// secondLook is the time between the two looks at the jobs after a change: a submit that had read
// the former timetable may be complete only after the first.
const secondLook = 30 * time.Second

// RunOnce moves the appointments of all open tasks, if the timetable has changed.
func (d *Mover) RunOnce(ctx context.Context) error {
	moved, err := d.Moves.MovedFor(ctx)
	if err != nil {
		return err
	}
	version, book, err := d.Book(ctx)
	changed, now := version != moved, d.Now()
	if err != nil || !changed && (d.again.IsZero() || now.Before(d.again)) {
		return err
	}
	stock, err := d.Stock()
	if err != nil {
		return err
	}
	tasks, err := d.Tasks.Tasks(ctx, openMax)
	if err != nil {
		return err
	}
	away := false // a task that cannot be moved now
	for _, t := range tasks {
		away = away || t.State == jobs.TaskAway
		if t.State == jobs.TaskEnded || t.State == jobs.TaskSubmitting || t.State == jobs.TaskAway {
			continue
		}
		m := moving{mover: d, book: book, stock: stock, task: t}
		if err := m.move(ctx); err != nil && !errors.Is(err, queue.ErrNotFound) {
			return err
		}
	}
	if away {
		return nil
	}
	d.again = time.Time{}
	if changed {
		d.again = now.Add(secondLook)
	}
	return d.Moves.SetMovedFor(ctx, version)
}

// openMax bounds the tasks that are moved: lists keep as many.
const openMax = 10_000

// moving looks at the appointments of one task.
type moving struct {
	mover *Mover
	book  *windows.Book
	stock *fleet.Inventory
	task  jobs.TaskInfo
	spec  jobs.Spec
	times *windows.Schedule        // of the schedule that made the task; nil: not known any more
	turns map[string]*submit.Turns // by zone
}

func (m *moving) move(ctx context.Context) error {
	var err error
	if m.spec, err = m.mover.Tasks.Spec(ctx, m.task.Task); err != nil {
		return err
	}
	if m.times, err = m.schedule(ctx); err != nil {
		return err
	}
	return m.mover.Jobs.EachJob(ctx, m.task.Task, 0, jobsMax, func(list []jobs.JobInfo) error {
		now := m.mover.Now()
		// A queued job may have got its time at submit, also from a freeze alone.
		waits := slices.DeleteFunc(list, func(j jobs.JobInfo) bool {
			return j.State != jobs.Deferred && j.State != jobs.Queued || j.Next.Before(now.Add(soon))
		})
		if len(waits) == 0 {
			return nil
		}
		return m.moveJobs(ctx, waits, now)
	})
}

// schedule returns the times of the schedule that made the task, if it still is as it was then.
func (m *moving) schedule(ctx context.Context) (*windows.Schedule, error) {
	if m.spec.Schedule == "" {
		return nil, nil
	}
	kept, err := m.mover.Schedules.Schedule(ctx, m.spec.Schedule)
	if errors.Is(err, queue.ErrNotFound) || err == nil && kept.At.After(m.spec.Tick.Time) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	times, err := kept.Entry.Schedule()
	if err != nil {
		m.mover.Log.Warn("schedule cannot be read, so its jitter is not known", "schedule",
			m.spec.Schedule, "error", err)
		return nil, nil
	}
	return &times, nil
}

// moveJobs looks at some jobs that wait.
func (m *moving) moveJobs(ctx context.Context, list []jobs.JobInfo, now time.Time) error {
	hosts := make(map[string]fleet.Host, len(list))
	var fields []string
	for _, j := range list {
		if h, ok := m.stock.Host(j.Host); ok {
			hosts[j.Host] = h
			fields = append(fields, jobs.EstimateField(m.spec.Work(), h))
		}
	}
	slices.Sort(fields)
	estimates, err := m.mover.Estimates.Estimates(ctx, slices.Compact(fields))
	if err != nil {
		return err
	}
	moves, cancel := map[string][]jobs.Move{}, map[string][]jobs.ID{}
	for _, j := range list {
		h, ok := hosts[j.Host]
		if !ok {
			continue
		}
		takes := cmp.Or(estimates[jobs.EstimateField(m.spec.Work(), h)].P90, m.spec.Expect)
		to := m.book.Move(m.waiting(h, j, takes), now)
		switch {
		case to.Cancel != "":
			cancel[to.Cancel] = append(cancel[to.Cancel], j.ID)
		case !to.To.IsZero():
			moves[h.Zone] = append(moves[h.Zone], jobs.Move{Host: j.Host,
				Was: jobs.MicrosOf(j.Next.Time), To: m.turn(h.Zone).Next(jobs.MicrosOf(to.To))})
		}
	}
	return m.carryOut(ctx, moves, cancel)
}

func (m *moving) waiting(h fleet.Host, j jobs.JobInfo, takes time.Duration) windows.Waiting {
	// Openings begin at whole seconds; the rest is the place of the job among those of its task.
	at := j.Next.Truncate(time.Second)
	w := windows.Waiting{Place: jobs.Place(h), At: at, Work: windows.Work{
		Runbook: m.spec.Runbook, Window: m.spec.Window, Reserve: m.spec.Reserve,
		Override: m.spec.Override, Estimate: takes}, From: m.spec.After.Time()}
	switch {
	case m.spec.Schedule == "" || j.State != jobs.Queued:
	case m.times == nil:
		w.From = j.Next.Time // this may be its place within the jitter: it never begins before that
	default:
		if at := m.spec.Tick.Add(m.times.Offset(j.Host)); at.After(w.From) {
			w.From = at
		}
	}
	return w
}

// turn returns the turns of the task in a zone.
func (m *moving) turn(zone string) *submit.Turns {
	if m.turns == nil {
		m.turns = map[string]*submit.Turns{}
	}
	if m.turns[zone] == nil {
		m.turns[zone] = &submit.Turns{Priority: m.task.Priority}
	}
	return m.turns[zone]
}

func (m *moving) carryOut(ctx context.Context, moves map[string][]jobs.Move,
	cancel map[string][]jobs.ID) error {
	for zone, list := range moves {
		n, err := m.mover.Moves.Appoint(ctx, zone, m.task.Task, list)
		if err != nil && !errors.Is(err, queue.ErrNotFound) {
			return err
		}
		m.mover.Log.Info("windows have changed: jobs were moved", "task", m.task.Task, "zone", zone,
			"jobs", n)
	}
	for why, ids := range cancel {
		_, err := m.mover.Cancels.CancelJobs(ctx, ids, "windows have changed: "+why)
		if err != nil {
			return err
		}
		m.mover.Log.Info("windows have changed: jobs were cancelled", "task", m.task.Task,
			"jobs", len(ids))
	}
	return nil
}

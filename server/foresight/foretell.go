package foresight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	forecast "muster/jobs/plan"
	"muster/jobs/queue"
	"muster/jobs/staff"
	"muster/server/draft"
	"muster/server/stock"
	"muster/windows"
)

// chunk is the number of jobs that are read at once.
const chunk = 500

// Tasks reads the tasks of the queue. The errors of Spec wrap queue.ErrNotFound if a task has
// gone.
type Tasks interface {
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
	Spec(ctx context.Context, id jobs.TaskID) (jobs.Spec, error)
}

// Estimates reads how long runbooks take.
type Estimates interface {
	Estimates(ctx context.Context, fields []string) (map[string]jobs.Estimate, error)
}

// A Forecaster knows the queue, the windows and the nodes.
type Forecaster struct {
	Tasks Tasks
	// Seen returns those tasks of a list that the caller may see.
	Seen      func(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error)
	Jobs      stock.Jobs
	Estimates Estimates
	Lanes     Lanes
	Stock     *stock.Store
	Book      func(context.Context) (*windows.Book, error)
	Slots     func(context.Context) (map[string]int, error) // of the nodes of each zone
	Staff     Staff
	Overload  jobs.Overload
	Now       func() time.Time
}

// unserved explains for each of some zones in which no node begins jobs why that is so. If that
// cannot be read, the explanation says so: what is not known must not look like a node.
func unserved(ctx context.Context, read Staff, zones []string) (words []string) {
	all, err := read(ctx)
	if err != nil {
		return []string{"whether nodes work on its zones is not known: " + err.Error()}
	}
	for _, zone := range zones {
		if text := staff.MissingOn(all, zone); text != "" {
			words = append(words, text)
		}
	}
	return words
}

// Staff returns the nodes that begin jobs, by zone.
type Staff func(context.Context) (map[string]*staff.Zone, error)

// foretelling is the world of a plan while it is put together.
type foretelling struct {
	forecast.World
	stock *stock.Stock
	// estimates come from the hub, as those by which workers admit, by field. One without
	// successes is missing there.
	estimates map[string]jobs.Estimate
	taken     map[string]*api.TakenTime // of the task that is asked for, by field
	notes     []string
	rolls     rollNotes
	lanes     *lineups
	seen      map[jobs.TaskID]bool // tasks of the queue that the caller may see
}

// A plan looks at most at so many tasks of the queue.
const queuedMax = 500

// ground puts together the tasks of the queue, for a task that is asked for with its lane, if any.
func (f *Forecaster) ground(ctx context.Context, asked draft.Lane) (*foretelling,
	[]api.OtherTask, error) {
	book, err := f.Book(ctx)
	if err != nil {
		return nil, nil, err
	}
	st, err := f.Stock.Get()
	if err != nil {
		return nil, nil, err
	}
	w := &foretelling{stock: st, estimates: map[string]jobs.Estimate{},
		World: forecast.World{Now: f.Now(), Book: book, Limits: map[string]int{},
			Overload: f.Overload}}
	for _, l := range st.Limits() {
		w.Limits[l.Name] = l.Max
	}
	if w.Slots, err = f.Slots(ctx); err != nil {
		return nil, nil, err
	}
	if w.lanes, err = f.lineUp(ctx, asked); err != nil {
		return nil, nil, err
	}
	others, err := f.queued(ctx, w)
	return w, others, err
}

// foretell puts together the tasks of the queue and a new one, which is the last.
func (f *Forecaster) foretell(ctx context.Context, p draft.Draft) (*foretelling,
	[]api.OtherTask, error) {
	w, others, err := f.ground(ctx, p.Waits.Lane)
	if err != nil {
		return nil, nil, err
	}
	if err := f.askEstimates(ctx, w, p.Task.Spec.Work(), p.Picked); err != nil {
		return nil, nil, err
	}
	w.taken = map[string]*api.TakenTime{}
	w.add(p)
	w.lanes.turns(w.Tasks)
	guessed := 0
	for _, t := range w.taken {
		if t.Successes == 0 {
			guessed += t.Hosts
		}
	}
	if guessed > 0 {
		w.notes = append(w.notes, guessWords(guessed, p.Task.Spec))
	}
	w.notes = append(w.notes, unserved(ctx, f.Staff, slices.Sorted(maps.Keys(p.Hosts)))...)
	return w, others, nil
}

// guessWords says which time stands for the time of a task on hosts where it never succeeded.
func guessWords(hosts int, spec jobs.Spec) string {
	if spec.Unsaid {
		return fmt.Sprintf("on %d hosts nobody knows how long it takes: with these arguments it never "+
			"succeeded there, and neither its runbook nor --expect says it; they are taken to need %s, "+
			"the bound of an attempt", hosts, spec.Expect)
	}
	return fmt.Sprintf("on %d hosts it never succeeded with these arguments: they are taken to need "+
		"%s, as the runbook, or --expect, says", hosts, spec.Expect)
}

// askEstimates asks the hub how long some work takes on hosts, unless that is known.
func (f *Forecaster) askEstimates(ctx context.Context, w *foretelling, work string,
	hosts []fleet.Host) error {
	var fields []string
	for _, h := range hosts {
		field := jobs.EstimateField(work, h)
		if _, known := w.estimates[field]; !known {
			w.estimates[field] = jobs.Estimate{}
			fields = append(fields, field)
		}
	}
	found, err := f.Estimates.Estimates(ctx, fields)
	maps.Copy(w.estimates, found)
	return err
}

// add adds the task that is asked for.
func (w *foretelling) add(p draft.Draft) {
	spec := p.Task.Spec
	due := w.Now
	if at := p.Task.At.Time(); p.Task.At > 0 && at.After(due) {
		due = at
	}
	t := taskOfSpec("", spec)
	if r := spec.Rollout; r != nil {
		t.Waves, t.Soak = r.Waves, r.Soak
		w.notes = append(w.notes, rolloutWords(*r)...)
	}
	for _, name := range p.Names {
		h, ok := w.stock.Host(name)
		if !ok {
			continue // it was picked from the same inventory
		}
		j := forecast.Job{Zone: h.Zone, Due: due}
		j.Place, j.Holds = placeOf(h, spec.Disruptive, spec.Needs, w.stock.Limits())
		j.Takes, j.Within = w.lasts(spec, h)
		t.Jobs = append(t.Jobs, j)
	}
	w.Tasks = append(w.Tasks, t)
}

// rolloutWords says what a plan takes for granted about a rollout.
func rolloutWords(r jobs.Rollout) (notes []string) {
	if r.Gate && len(r.Waves) > 1 {
		notes = append(notes, "each wave is taken to be opened by a person at once")
	}
	if r.Health != "" {
		notes = append(notes, "health checks are taken to need no time")
	}
	return notes
}

func taskOfSpec(id jobs.TaskID, s jobs.Spec) forecast.Task {
	return forecast.Task{ID: id, Operator: s.Operator, Weight: s.Priority.Weight(),
		Work: windows.Work{Runbook: s.Runbook, Window: s.Window, Reserve: s.Reserve,
			Override: s.Override}}
}

// queued adds the tasks of the queue, the oldest first: of those that are paused it is
// not known when they go on.
func (f *Forecaster) queued(ctx context.Context, w *foretelling) ([]api.OtherTask, error) {
	list, err := f.Tasks.Tasks(ctx, queuedMax)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b jobs.TaskInfo) int { return cmp.Compare(a.Task, b.Task) })
	// All of them count for the forecast, and the answer names those that the caller sees.
	shown, err := f.Seen(ctx, list)
	if err != nil {
		return nil, err
	}
	w.seen = map[jobs.TaskID]bool{}
	for _, t := range shown {
		w.seen[t.Task] = true
	}
	var out []api.OtherTask
	paused := 0
	for _, t := range list {
		if !w.goesOn(t) {
			if t.State == jobs.TaskPaused && w.seen[t.Task] {
				paused++
			}
			continue
		}
		one, left, err := f.queuedTask(ctx, w, t)
		if errors.Is(err, queue.ErrNotFound) {
			continue // it has ended meanwhile, and is gone
		}
		if err != nil {
			return nil, err
		}
		if left.waiting() == 0 {
			continue
		}
		w.Tasks = append(w.Tasks, one)
		out = append(out, api.OtherTask{Task: t.Task, Runbook: t.Runbook, Operator: t.Operator,
			Waiting: left.waiting(), Left: left.waiting() - len(one.Jobs)})
	}
	w.notes = append(append(w.notes, w.rolls.words()...), w.lanes.words(w.seen)...)
	if paused > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%d paused tasks are taken to stay so", paused))
	}
	return out, nil
}

// goesOn reports whether a task of the queue does its jobs in a plan.
func (w *foretelling) goesOn(t jobs.TaskInfo) bool {
	switch t.State {
	case jobs.TaskQueued, jobs.TaskRunning:
		return true
	case jobs.TaskPaused, jobs.TaskStopped, jobs.TaskAway:
		w.lanes.halted[t.Task] = true
	case jobs.TaskEnded:
		w.lanes.failed[t.Task] = t.Outcomes[jobs.Succeeded] < t.Total
	case jobs.TaskSubmitting:
		return !t.CancelledInSubmit && w.lanes.has(t.Task)
	}
	return false
}

func (f *Forecaster) queuedTask(ctx context.Context, w *foretelling, t jobs.TaskInfo) (
	forecast.Task, *course, error) {
	spec, err := f.Tasks.Spec(ctx, t.Task)
	if err != nil {
		return forecast.Task{}, nil, err
	}
	one := taskOfSpec(t.Task, spec)
	left := newCourse(t)
	err = f.Jobs.EachJob(ctx, t.Task, 0, chunk, func(list []jobs.JobInfo) error {
		list = left.open(list)
		hosts := make([]fleet.Host, len(list))
		for i, j := range list {
			h, ok := w.stock.Host(j.Host)
			if !ok {
				h = fleet.Host{Name: j.Host, Zone: t.Zones[0]}
			}
			hosts[i] = h
		}
		if err := f.askEstimates(ctx, w, spec.Work(), hosts); err != nil {
			return err
		}
		for i, j := range list {
			h := hosts[i]
			job := forecast.Job{Zone: h.Zone, Due: j.Due.Time, Busy: j.State == jobs.Running}
			if j.Next.After(w.Now) && !job.Busy {
				job.Due = j.Next.Time
			}
			job.Place, job.Holds = placeOf(h, spec.Disruptive, spec.Needs, w.stock.Limits())
			job.Takes, job.Within = w.lasts(spec, h)
			if job.Busy {
				// One that runs longer than usual may end at any moment.
				job.Takes = max(job.Takes-w.Now.Sub(j.Started.Time), time.Second)
			}
			one.Jobs = append(one.Jobs, job)
		}
		return nil
	})
	if err != nil {
		return one, left, err
	}
	left.goesOn(&one, w.Now)
	if w.seen[t.Task] {
		w.note(left)
	}
	return one, left, nil
}

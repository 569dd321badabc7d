package server

import (
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
	"muster/server/draft"
	"muster/server/stock"
	"muster/windows"
)

// foretelling is the world of a plan while it is put together.
type foretelling struct {
	forecast.World
	stock *stock.Stock
	// estimates are those of the hub, by which workers admit, by field; without successes:
	// it has none.
	estimates map[string]jobs.Estimate
	taken     map[string]*api.TakenTime // of the task that is asked for, by field
	notes     []string
}

// queuedMax is how many tasks of the queue a plan looks at.
const queuedMax = 500

// foretell puts together what is known of the queue, and of a new task, which is the
// last one.
func (s *Server) foretell(ctx context.Context, p draft.Draft) (*foretelling,
	[]api.OtherTask, error) {
	_, book, err := s.book(ctx)
	if err != nil {
		return nil, nil, err
	}
	stock, err := s.stock.Get()
	if err != nil {
		return nil, nil, err
	}
	overload := s.cfg.Overload
	if overload == (jobs.Overload{}) {
		overload = jobs.DefaultOverload()
	}
	w := &foretelling{stock: stock, estimates: map[string]jobs.Estimate{},
		World: forecast.World{Now: s.now(), Book: book, Limits: map[string]int{},
			Overload: overload}}
	for _, l := range stock.Limits() {
		w.Limits[l.Name] = l.Max
	}
	if w.Slots, err = s.intake.openings.Slots(ctx); err != nil {
		return nil, nil, err
	}
	others, err := s.queued(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	if err := s.askEstimates(ctx, w, p.Task.Spec.Work(), p.Picked); err != nil {
		return nil, nil, err
	}
	w.taken = map[string]*api.TakenTime{}
	w.add(p)
	guessed := 0
	for _, t := range w.taken {
		if t.Successes == 0 {
			guessed += t.Hosts
		}
	}
	if guessed > 0 {
		w.notes = append(w.notes, guessWords(guessed, p.Task.Spec))
	}
	return w, others, nil
}

// guessWords say what is taken for the time that a task needs on hosts where it never succeeded.
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
func (s *Server) askEstimates(ctx context.Context, w *foretelling, work string,
	hosts []fleet.Host) error {
	var fields []string
	for _, h := range hosts {
		field := jobs.EstimateField(work, h)
		if _, known := w.estimates[field]; !known {
			w.estimates[field] = jobs.Estimate{}
			fields = append(fields, field)
		}
	}
	found, err := s.queue.Hub.Estimates.Estimates(ctx, fields)
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

func taskOfSpec(id jobs.TaskID, s jobs.Spec) forecast.Task {
	return forecast.Task{ID: id, Operator: s.Operator, Weight: s.Priority.Weight(),
		Work: windows.Work{Runbook: s.Runbook, Window: s.Window, Reserve: s.Reserve,
			Override: s.Override}}
}

// queued adds the tasks of the queue, the oldest first: of those that are paused it is
// not known when they go on.
func (s *Server) queued(ctx context.Context, w *foretelling) ([]api.OtherTask, error) {
	list, err := s.queue.Read.Tasks.Tasks(ctx, queuedMax)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b jobs.TaskInfo) int { return compareText(a.Task, b.Task) })
	var out []api.OtherTask
	paused := 0
	for _, t := range list {
		switch t.State {
		case jobs.TaskPaused:
			paused++
			continue
		case jobs.TaskQueued, jobs.TaskRunning:
		default:
			continue
		}
		one, err := s.queuedTask(ctx, w, t)
		if errors.Is(err, queue.ErrNotFound) {
			continue // it has ended meanwhile, and is gone
		}
		if err != nil {
			return nil, err
		}
		if len(one.Jobs) == 0 {
			continue
		}
		w.Tasks = append(w.Tasks, one)
		out = append(out, api.OtherTask{Task: t.Task, Runbook: t.Runbook, Operator: t.Operator,
			Waiting: len(one.Jobs)})
	}
	if paused > 0 {
		w.notes = append(w.notes, fmt.Sprintf("%d paused tasks are taken to stay so", paused))
	}
	return out, nil
}

func (s *Server) queuedTask(ctx context.Context, w *foretelling, t jobs.TaskInfo) (
	forecast.Task, error) {
	spec, err := s.queue.Read.Tasks.Spec(ctx, t.Task)
	if err != nil {
		return forecast.Task{}, err
	}
	one := taskOfSpec(t.Task, spec)
	err = s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(list []jobs.JobInfo) error {
		list = slices.DeleteFunc(slices.Clone(list), func(j jobs.JobInfo) bool {
			return j.State == jobs.Ended
		})
		hosts := make([]fleet.Host, len(list))
		for i, j := range list {
			h, ok := w.stock.Host(j.Host)
			if !ok {
				h = fleet.Host{Name: j.Host, Zone: t.Zones[0]}
			}
			hosts[i] = h
		}
		if err := s.askEstimates(ctx, w, spec.Work(), hosts); err != nil {
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
	return one, err
}

func compareText[T ~string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

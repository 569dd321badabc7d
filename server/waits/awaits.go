package waits

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

// An answer tells so many openings of a task apart. One more item, without an opening, counts
// the jobs that wait for later ones.
const awaitsShown = 60

// An answer has at most so many tasks of a zone whose jobs are deferred.
const awaitedTasks = 20

// Awaits finds out for which windows and freezes jobs wait, and counts them by that.
type Awaits struct {
	in     *Reader
	book   *windows.Book
	waiter *windows.Waiter
	stock  *stock.Stock
	doubt  string // why nobody can tell; empty: somebody can
	specs  map[jobs.TaskID]jobs.Spec
	groups map[awaitKey]*awaitGroup
	ahead  map[jobs.ID]bool // jobs that wait for what is still to come
}

// The jobs of one group have an awaitKey in common.
type awaitKey struct {
	task        jobs.TaskID
	opens, ends time.Time
	windows     string
	why         string
}

type awaitGroup struct {
	jobs.Appointment
	hosts []string
}

// Awaits begins a look. If it is not known what is agreed, the answer says so for all that wait.
func (r *Reader) Awaits(ctx context.Context) *Awaits {
	a := &Awaits{in: r, specs: map[jobs.TaskID]jobs.Spec{}, groups: map[awaitKey]*awaitGroup{},
		ahead: map[jobs.ID]bool{}}
	book, err := r.Book(ctx)
	if err == nil {
		a.book, a.waiter = book, book.Waiter(r.Now())
		a.stock, err = r.Stock.Get()
	}
	if err != nil {
		a.doubt = "for which window is not known: " + err.Error()
	}
	return a
}

// Add looks at jobs of one task.
func (a *Awaits) Add(ctx context.Context, t jobs.TaskInfo, list []jobs.JobInfo) error {
	var wait []jobs.JobInfo
	for _, j := range list {
		later := j.State == jobs.Deferred || j.State == jobs.Queued
		if later && j.Next.After(a.in.Now()) {
			wait = append(wait, j)
		}
	}
	if len(wait) == 0 {
		return nil
	}
	spec, known := a.specs[t.Task]
	if !known {
		var err error
		if spec, err = a.in.Tasks.Spec(ctx, t.Task); err != nil {
			if errors.Is(err, queue.ErrNotFound) {
				return nil // it has ended meanwhile, and is gone
			}
			return err
		}
		a.specs[t.Task] = spec
	}
	hosts, estimates, err := a.hosts(ctx, spec, wait)
	if err != nil {
		return err
	}
	for _, j := range wait {
		h, there := hosts[j.Host]
		w := windows.Awaited{Why: a.doubt}
		switch {
		case a.doubt != "":
		case !there:
			w.Why = "for which window is not known: the host is in the inventory no more"
		default:
			w = a.waiter.Of(jobs.Place(h), j.Next.Time, windows.Work{Runbook: spec.Runbook,
				Window: spec.Window, Reserve: spec.Reserve, Override: spec.Override,
				Estimate: cmp.Or(estimates[jobs.EstimateField(spec.Work(), h)].P90, spec.Expect)})
		}
		a.count(t.Task, spec, j, w)
	}
	return nil
}

// hosts returns the hosts of jobs as the inventory has them, with how long the work takes there.
func (a *Awaits) hosts(ctx context.Context, spec jobs.Spec, list []jobs.JobInfo) (
	map[string]fleet.Host, map[string]jobs.Estimate, error) {
	if a.doubt != "" {
		return nil, nil, nil
	}
	hosts := make(map[string]fleet.Host, len(list))
	var fields []string
	for _, j := range list {
		if h, ok := a.stock.Host(j.Host); ok {
			hosts[j.Host] = h
			fields = append(fields, jobs.EstimateField(spec.Work(), h))
		}
	}
	if !spec.Window {
		return hosts, nil, nil
	}
	slices.Sort(fields)
	estimates, err := a.in.Estimates.Estimates(ctx, slices.Compact(fields))
	return hosts, estimates, err
}

// count puts a job to those that wait for the same.
func (a *Awaits) count(task jobs.TaskID, spec jobs.Spec, j jobs.JobInfo, w windows.Awaited) {
	if w.Why == "" && len(w.Windows) == 0 {
		return // it waits for its own time alone
	}
	// A window that is open already keeps no job.
	a.ahead[j.ID] = w.Why != "" || w.Start.After(a.in.Now())
	key := awaitKey{task, w.Start, w.End, strings.Join(w.Windows, " "), w.Why}
	g := a.groups[key]
	if g == nil {
		g = &awaitGroup{Appointment: jobs.Appointment{Task: task, Runbook: spec.Runbook,
			Operator: spec.Operator, Windows: a.names(w.Windows), Opens: jobs.Time{Time: w.Start},
			Ends: jobs.Time{Time: w.End}, Due: j.Next, Why: w.Why}}
		if w.Why != "" {
			g.Ends = jobs.Time{Time: w.Until}
		}
		a.groups[key] = g
	}
	g.Count++
	g.hosts = append(g.hosts, j.Host)
	if j.Next.Before(g.Due.Time) {
		g.Due = j.Next
	}
}

func (a *Awaits) names(list []string) []jobs.WindowName {
	out := make([]jobs.WindowName, len(list))
	for i, name := range list {
		w, _ := a.book.Window(name)
		out[i] = jobs.WindowName{Name: name, For: w.Whose()}
	}
	return out
}

// List returns the openings that jobs wait for, the first one first. One item stands for all
// beyond the bound.
func (a *Awaits) List() []jobs.Appointment {
	var out []jobs.Appointment
	for _, g := range a.groups {
		g.Hosts = fleet.Fold(g.hosts)
		out = append(out, g.Appointment)
	}
	slices.SortFunc(out, func(x, y jobs.Appointment) int {
		return cmp.Or(x.Due.Compare(y.Due.Time), cmp.Compare(x.Task, y.Task),
			cmp.Compare(x.Hosts, y.Hosts))
	})
	if len(out) <= awaitsShown {
		return out
	}
	rest := jobs.Appointment{Windows: []jobs.WindowName{}, Due: out[awaitsShown].Due,
		Why: "they wait for later openings; `muster job ID` tells of one"}
	for _, more := range out[awaitsShown:] {
		rest.Count += more.Count
	}
	return append(out[:awaitsShown], rest)
}

// AwaitedBy returns the window or freeze for which a job waits, with all jobs of its task that wait
// for the same; nil: it waits for none.
func (r *Reader) AwaitedBy(ctx context.Context, t jobs.TaskInfo, j jobs.JobInfo) (
	*jobs.Appointment, error) {
	one := r.Awaits(ctx)
	if err := one.Add(ctx, t, []jobs.JobInfo{j}); err != nil || len(one.groups) == 0 {
		return nil, err
	}
	all := r.Awaits(ctx)
	view := web.ViewOf(ctx)
	err := r.Jobs.EachJob(ctx, t.Task, 0, chunk, func(list []jobs.JobInfo) error {
		return all.Add(ctx, t, slices.DeleteFunc(slices.Clone(list), func(j jobs.JobInfo) bool {
			return !view.Sees(j.Host)
		}))
	})
	if err != nil && !errors.Is(err, queue.ErrNotFound) {
		return nil, err
	}
	for key, g := range one.groups {
		if more := all.groups[key]; more != nil {
			g = more
		}
		g.Hosts, g.Due = fleet.Fold(g.hosts), j.Next
		return &g.Appointment, nil
	}
	return nil, nil
}

// Deferrals lists the openings that jobs of a zone wait for which have a time of their own.
func (r *Reader) Deferrals(ctx context.Context, zone string) (jobs.Deferrals, error) {
	list, more, err := r.Deferring.Deferred(ctx, zone)
	out := jobs.Deferrals{Count: len(list), More: more, Appointments: []jobs.Appointment{}}
	if err != nil || len(list) == 0 {
		return out, err
	}
	out.Next = list[0].Next
	of := map[jobs.TaskID][]jobs.JobInfo{}
	var order []jobs.TaskID
	for _, j := range list {
		id := j.ID.Task()
		if of[id] == nil {
			order = append(order, id)
		}
		of[id] = append(of[id], j)
	}
	a := r.Awaits(ctx)
	for _, id := range order[:min(len(order), awaitedTasks)] {
		if err := a.Add(ctx, jobs.TaskInfo{Task: id}, of[id]); err != nil {
			return out, err
		}
	}
	out.Appointments = append(out.Appointments, a.List()...)
	return out, nil
}

package server

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
	"muster/windows"
)

// awaitsShown is how many openings of a task are told apart. Jobs that wait for later ones are
// one more, without an opening.
const awaitsShown = 60

// awaitedTasks is how many tasks of a zone are told of whose jobs are deferred.
const awaitedTasks = 20

// awaiting finds out for which windows and freezes jobs wait, and counts them by that.
type awaiting struct {
	*Server
	book   *windows.Book
	waiter *windows.Waiter
	stock  *stock.Stock
	doubt  string // why nobody can tell; empty: somebody can
	specs  map[jobs.TaskID]jobs.Spec
	groups map[awaitKey]*awaitGroup
	ahead  map[jobs.ID]bool // jobs that wait for what is still to come
}

// awaitKey is what jobs of one group have in common.
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

// awaiting begins a look. What is agreed may not be known: then it says so of all that wait.
func (s *Server) awaiting(ctx context.Context) *awaiting {
	a := &awaiting{Server: s, specs: map[jobs.TaskID]jobs.Spec{}, groups: map[awaitKey]*awaitGroup{},
		ahead: map[jobs.ID]bool{}}
	_, book, err := s.book(ctx)
	if err == nil {
		a.book, a.waiter = book, book.Waiter(s.now())
		a.stock, err = s.stock.Get()
	}
	if err != nil {
		a.doubt = "for which window is not known: " + err.Error()
	}
	return a
}

// add looks at jobs of one task.
func (a *awaiting) add(ctx context.Context, t jobs.TaskInfo, list []jobs.JobInfo) error {
	var wait []jobs.JobInfo
	for _, j := range list {
		later := j.State == jobs.Deferred || j.State == jobs.Queued
		if later && j.Next.After(a.now()) {
			wait = append(wait, j)
		}
	}
	if len(wait) == 0 {
		return nil
	}
	spec, known := a.specs[t.Task]
	if !known {
		var err error
		if spec, err = a.queue.Read.Tasks.Spec(ctx, t.Task); err != nil {
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

// hosts are those of jobs as the inventory has them, with how long the work takes there.
func (a *awaiting) hosts(ctx context.Context, spec jobs.Spec, list []jobs.JobInfo) (
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
	estimates, err := a.queue.Hub.Estimates.Estimates(ctx, slices.Compact(fields))
	return hosts, estimates, err
}

// count puts a job to those that wait for the same.
func (a *awaiting) count(task jobs.TaskID, spec jobs.Spec, j jobs.JobInfo, w windows.Awaited) {
	if w.Why == "" && len(w.Windows) == 0 {
		return // it waits for its own time alone
	}
	// A window that is open already is not what keeps a job.
	a.ahead[j.ID] = w.Why != "" || w.Start.After(a.now())
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

func (a *awaiting) names(list []string) []jobs.WindowName {
	out := make([]jobs.WindowName, len(list))
	for i, name := range list {
		w, _ := a.book.Window(name)
		out[i] = jobs.WindowName{Name: name, For: w.Whose()}
	}
	return out
}

// list is what jobs wait for, the first opening first. What is beyond the bound is one.
func (a *awaiting) list() []jobs.Appointment {
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

// awaitedBy is the window or freeze for which a job waits, with all jobs of its task that wait
// for the same; nil: it waits for none.
func (s *Server) awaitedBy(ctx context.Context, t jobs.TaskInfo, j jobs.JobInfo) (
	*jobs.Appointment, error) {
	one := s.awaiting(ctx)
	if err := one.add(ctx, t, []jobs.JobInfo{j}); err != nil || len(one.groups) == 0 {
		return nil, err
	}
	all := s.awaiting(ctx)
	err := s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(list []jobs.JobInfo) error {
		return all.add(ctx, t, list)
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

// deferrals tells what jobs of a zone wait for that have a time of their own.
func (s *Server) deferrals(ctx context.Context, zone string) (jobs.Deferrals, error) {
	list, more, err := s.queue.Read.Waits.Deferred(ctx, zone)
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
	a := s.awaiting(ctx)
	for _, id := range order[:min(len(order), awaitedTasks)] {
		if err := a.add(ctx, jobs.TaskInfo{Task: id}, of[id]); err != nil {
			return out, err
		}
	}
	out.Appointments = append(out.Appointments, a.list()...)
	return out, nil
}

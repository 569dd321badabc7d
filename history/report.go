package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster/api"
	"muster/internal/wording"
	"muster/jobs"
)

// notProven counts the jobs whose end nobody has proven.
func notProven(list []api.PastJob) (n int) {
	for _, j := range list {
		if j.Proof == api.NotProven {
			n++
		}
	}
	return n
}

// ErrNotFound is wrapped if history does not have a task or job.
var ErrNotFound = errors.New("not in history")

// Task returns the last stored form of a task, with the outcomes of its jobs.
func (s *Store) Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	list, err := s.tasks(ctx, "where id = $1", string(id))
	if err != nil {
		return jobs.TaskInfo{}, err
	}
	if len(list) == 0 {
		return jobs.TaskInfo{}, fmt.Errorf("task %s: %w", id, ErrNotFound)
	}
	t := list[0]
	t.Outcomes = jobs.NewCounts()
	err = s.rows(ctx, "task", "select outcome, count(*) from jobs where task = $1 group by outcome",
		[]any{string(id)}, func(scan func(...any) error) error {
			var o string
			var n int
			err := scan(&o, &n)
			t.Outcomes[jobs.Outcome(o)] = n
			return err
		})
	return t, err
}

// Open lists tasks whose end is not stored, the oldest first; at most so many.
func (s *Store) Open(ctx context.Context, most int) ([]jobs.TaskID, error) {
	list, err := s.tasks(ctx, fmt.Sprintf("where state <> 'ended' order by submitted limit %d", most))
	out := make([]jobs.TaskID, len(list))
	for i, t := range list {
		out[i] = t.Task
	}
	return out, err
}

// LastRun returns the newest task with a runbook that began, but for one task. The error wraps
// ErrNotFound if there is none.
func LastRun(ctx context.Context, s *Store, runbook string, but jobs.TaskID) (jobs.TaskInfo,
	error) {
	list, err := s.tasks(ctx, "where runbook = $1 and id <> $2 and started > 0 "+
		"order by submitted desc limit 1", runbook, string(but))
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("runbook %s: %w", runbook, ErrNotFound)
	}
	if err != nil {
		return jobs.TaskInfo{}, err
	}
	return list[0], nil
}

func (s *Store) tasks(ctx context.Context, rest string, args ...any) ([]jobs.TaskInfo, error) {
	var out []jobs.TaskInfo
	err := s.rows(ctx, "task", "select "+strings.Join(taskColumns, ", ")+" from tasks "+rest, args,
		func(scan func(...any) error) error {
			var t jobs.TaskInfo
			var id, zones, priority, retry, state, ran string
			var tick, submitted, started, finished, proven int64
			err := scan(&id, &t.Runbook, &t.Operator, &t.On, &zones, &t.Inventory, &t.Schedule, &tick,
				&priority, &retry, &t.Cancelled, &state, &t.Total, &submitted, &started, &finished,
				&proven, &t.Reason, &ran)
			if err == nil {
				t.Ran, err = readRan(ran)
			}
			t.Proven = proven == 1
			t.Task, t.Zones = jobs.TaskID(id), strings.Split(zones, ",")
			t.Priority, t.RetryOf = jobs.Priority(priority), jobs.TaskID(retry)
			t.State = jobs.TaskState(state)
			t.Tick, t.Submitted = instant(tick), instant(submitted)
			t.Started, t.Finished = instant(started), instant(finished)
			if finished > 0 {
				t.Seconds = t.Finished.Sub(t.Submitted.Time).Seconds()
			}
			out = append(out, t)
			return err
		})
	return out, err
}

// NewReport counts the jobs of a task, each of which is in list at most once. Hosts of which
// nothing is known are a part of their own, because it is not certain that they succeeded, or that
// they never ran.
func NewReport(t jobs.TaskInfo, list []api.PastJob) api.Report {
	r := api.Report{Task: t, Total: max(t.Total, len(list)), Jobs: list, Spent: spentBy(list),
		Notes: []string{}}
	counts, begun := map[string]int{}, map[string]int{}
	// The task was read a moment before its jobs, and some may have ended in between.
	r.Task.Outcomes = jobs.NewCounts()
	for _, j := range list {
		part := partOf(j)
		counts[part]++
		if !j.Started.IsZero() {
			begun[part]++
		}
		if j.Outcome.Valid() {
			r.Task.Outcomes[j.Outcome]++
		}
	}
	missing := r.Total - len(list)
	counts[api.PartOfTheRest(t)] += missing
	if t.Total < len(list) {
		r.Notes = append(r.Notes, fmt.Sprintf("the task is said to be for %d hosts, but %d have ended: "+
			"what it was for is not known for sure", t.Total, len(list)))
	}
	for _, name := range partNames() {
		if n := counts[name]; n > 0 {
			r.Parts = append(r.Parts, api.ReportPart{Name: name, Hosts: n,
				Means: meaning(name, n, begun[name])})
		}
	}
	if n := notProven(list); n > 0 {
		r.Notes = append(r.Notes, fmt.Sprintf("not proven: no node has vouched for the end of %s, and "+
			"somebody who can write to Redis may have invented it; look at the hosts",
			wording.Count(n, "job")))
	}
	if t.Forgotten {
		r.Notes = append(r.Notes, "Redis has forgotten the task, and history knows of no end: of hosts "+
			"that are not known it is not known whether anything ran; look at them, then submit anew")
	}
	return r
}

func partOf(j api.PastJob) string {
	name := string(j.Outcome)
	if j.State != jobs.Ended && j.State != "" {
		name = string(j.State)
	}
	if !slices.Contains(partNames(), name) {
		return api.NotKnown
	}
	return name
}

// partNames lists the names of all parts in the order in which they are shown.
func partNames() []string {
	var out []string
	for _, o := range jobs.Outcomes() {
		out = append(out, string(o))
	}
	for _, s := range jobs.States() {
		if s != jobs.Ended {
			out = append(out, string(s))
		}
	}
	return append(out, api.NotEnded, api.NotKnown)
}

// meaning explains a part of n hosts to people; on so many of them the job had begun.
func meaning(name string, n, begun int) string {
	switch jobs.Outcome(name) {
	case jobs.Succeeded:
		return "the last step's own check said so"
	case jobs.Failed:
		return "the host said no"
	case jobs.Unreachable:
		return "nothing was ever run"
	case jobs.Timeout:
		return "ran over its bound and was stopped"
	case jobs.RolledBack:
		return "changed, not confirmed, and restored itself"
	case jobs.Unknown:
		return "it is not known whether a step ran, or how the host is since"
	case jobs.Cancelled, jobs.Expired, jobs.Superseded, jobs.Skipped:
		return calledOff(n, begun)
	}
	if name == api.NotKnown {
		return "how it ended is not in history: see `muster history gaps`"
	}
	return "has not ended"
}

// calledOff explains the end of n jobs that somebody or a deadline ended. A job that had begun may
// have run steps, and its error says where it was stopped, so it never counts among those that
// never ran.
func calledOff(n, begun int) string {
	const far = "had begun: the error says how far it came"
	switch {
	case begun == 0:
		return "never ran"
	case begun < n:
		return fmt.Sprintf("%d never ran, %d %s", n-begun, begun, far)
	}
	return far
}

// Report returns the result of a task for each of its hosts.
func (s *Store) Report(ctx context.Context, id jobs.TaskID) (api.Report, error) {
	t, err := s.Task(ctx, id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return api.Report{}, err
	}
	missing := err
	var list []api.PastJob
	err = s.rows(ctx, "report", jobSelect+" where task = $1 order by host", []any{string(id)},
		func(scan func(...any) error) error {
			j, err := scanJob(scan)
			list = append(list, j)
			return err
		})
	if err != nil {
		return api.Report{}, err
	}
	if missing != nil {
		if len(list) == 0 {
			return api.Report{}, missing
		}
		t = jobs.TaskInfo{Task: id, Outcomes: jobs.NewCounts()}
	}
	r := NewReport(t, list)
	if missing != nil {
		r.Notes = append(r.Notes, "what was asked for is not in history, only the ends of these jobs: "+
			"the task may have been for more hosts")
	}
	return r, nil
}

// Job returns a job that has ended.
func (s *Store) Job(ctx context.Context, id jobs.ID) (api.PastJob, error) {
	var out api.PastJob
	found := false
	err := s.rows(ctx, "job", jobSelect+" where task = $1 and host = $2",
		[]any{string(id.Task()), id.Host()}, func(scan func(...any) error) error {
			var err error
			out, err = scanJob(scan)
			found = true
			return err
		})
	if err == nil && !found {
		err = fmt.Errorf("job %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return out, err
	}
	list := []api.PastJob{out}
	err = s.addAsked(ctx, list)
	return list[0], err
}

// Gaps lists the gaps of all streams, the last one first.
func (s *Store) Gaps(ctx context.Context) ([]api.Gap, error) {
	out := []api.Gap{}
	err := s.rows(ctx, "gaps", "select zone, after, first, entries, at, note from gaps "+
		"order by at desc limit 1000", nil, func(scan func(...any) error) error {
		var g api.Gap
		var at int64
		err := scan(&g.Zone, &g.After, &g.First, &g.Entries, &at, &g.Note)
		g.At = instant(at)
		out = append(out, g)
		return err
	})
	return out, err
}

// Positions returns how far each stream was read, by zone.
func (s *Store) Positions(ctx context.Context) ([]api.Position, error) {
	out := []api.Position{}
	err := s.rows(ctx, "positions",
		"select zone, position, entries, events, at from streams order by zone", nil,
		func(scan func(...any) error) error {
			var p api.Position
			var at int64
			err := scan(&p.Zone, &p.Last, &p.Entries, &p.Events, &at)
			p.At = instant(at)
			out = append(out, p)
			return err
		})
	return out, err
}

// Rows returns the number of rows of each table.
func (s *Store) Rows(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	for _, name := range strings.Fields("tasks jobs attempts steps events output gaps plans") {
		text := "select count(*) from " + name
		err := s.rows(ctx, "count", text, nil, func(scan func(...any) error) error {
			var n int64
			err := scan(&n)
			out[name] = n
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

package dnssec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/tasks"
	"muster/server/web"
)

// The runbooks whose jobs say how keys are.
const (
	bookRoll   = "dnssec"
	bookStatus = "dnssec-status"
)

// The bounds of one look.
const (
	tasksLooked = 500 // the newest of Redis, beside those that have not ended
	pastLooked  = 200 // jobs of each runbook in history
	jobsLooked  = 500 // of a task
	outputsRead = 200 // of jobs
)

// errEnough ends a look at the jobs of a task that has more than jobsLooked.
var errEnough = errors.New("enough jobs were looked at")

// Tasks finds the tasks that have not ended.
type Tasks interface {
	OpenOf(ctx context.Context, zone string, runbooks ...string) ([]jobs.TaskID, error)
	Tasks(ctx context.Context, limit int) ([]jobs.TaskInfo, error)
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Routes shows how the keys of DNS zones are.
type Routes struct {
	Zones interface { // the queues
		Zones(ctx context.Context) ([]string, error)
	}
	Tasks Tasks
	Reads tasks.Reads
	Past  tasks.HistoryRoutes

	// Glance returns, for one look, whether the caller of a context sees the job of a task on a host.
	Glance func() Sees
}

// Sees reports whether the caller of a context sees the job of a task on a host.
type Sees = func(ctx context.Context, id jobs.TaskID, host string) (bool, error)

type (
	listInput struct {
		Name string `query:"name" doc:"only this DNS zone"`
	}
	listOutput struct{ Body api.DNSSECList }
)

// Routes registers the route of the resource.
func (s Routes) Routes(a huma.API) {
	huma.Register(a, web.Get("/v1/dnssec", "Show the keys of DNS zones and their rollovers, by what "+
		"jobs of the runbooks dnssec and dnssec-status said"), s.list)
}

// A seenJob is a job of one of the runbooks that the caller sees.
type seenJob struct {
	api.DNSSECJob
	next jobs.Time
	book string
	name string // of the DNS zone
	kind string // of the key
	past bool   // only history has it
}

func (s Routes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	out := &listOutput{api.DNSSECList{Zones: []api.DNSSECZone{}, Lacks: []string{}}}
	found, cut, err := s.present(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	past, why := s.past(ctx)
	for _, lack := range []string{cut, why} {
		if lack != "" {
			out.Body.Lacks = append(out.Body.Lacks, lack)
		}
	}
	read := 0
	for _, one := range newest(append(found, past...)) {
		if in.Name != "" && one.name != plain(in.Name) {
			continue
		}
		if read++; read > outputsRead {
			out.Body.Lacks = append(out.Body.Lacks, fmt.Sprintf("only the newest %d jobs were read: "+
				"ask for one zone by its name", outputsRead))
			break
		}
		if err := s.add(ctx, &out.Body, one); err != nil {
			return nil, web.Problem(err)
		}
	}
	slices.SortFunc(out.Body.Zones, func(a, b api.DNSSECZone) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Host, b.Host))
	})
	return out, nil
}

// present returns the jobs that Redis has, and says if it has left some out.
func (s Routes) present(ctx context.Context) (list []seenJob, lack string, err error) {
	all, err := s.described(ctx)
	if err != nil {
		return nil, "", err
	}
	sees := s.Glance()
	for _, t := range all {
		list, err = s.jobsOf(ctx, t, sees, list)
		if errors.Is(err, errEnough) {
			err, lack = nil, fmt.Sprintf("of a task with many hosts only %d jobs were looked at",
				jobsLooked)
		}
		if err != nil {
			return nil, "", err
		}
	}
	return list, lack, nil
}

// described returns the tasks of Redis whose jobs are looked at.
func (s Routes) described(ctx context.Context) ([]jobs.TaskInfo, error) {
	all, err := s.Tasks.Tasks(ctx, tasksLooked)
	if err != nil {
		return nil, err
	}
	known := map[jobs.TaskID]bool{}
	for _, t := range all {
		known[t.Task] = true
	}
	zones, err := s.Zones.Zones(ctx)
	if err != nil {
		return nil, err
	}
	for _, zone := range zones {
		ids, err := s.Tasks.OpenOf(ctx, zone, bookRoll, bookStatus)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if known[id] {
				continue
			}
			known[id] = true
			t, err := s.Tasks.Task(ctx, id)
			if err != nil && !errors.Is(err, queue.ErrNotFound) {
				return nil, err
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// jobsOf adds the jobs of a task that the caller sees. The error is errEnough if it has more than
// were looked at.
func (s Routes) jobsOf(ctx context.Context, t jobs.TaskInfo, sees Sees, list []seenJob) ([]seenJob,
	error) {
	one, is := described(t)
	if !is {
		return list, nil
	}
	looked := 0
	err := s.Reads.Jobs.EachJob(ctx, t.Task, 0, jobsLooked, func(part []jobs.JobInfo) error {
		for _, j := range part {
			if looked++; looked > jobsLooked {
				return errEnough
			}
			seen, err := sees(ctx, t.Task, j.Host)
			if err != nil {
				return err
			}
			if seen {
				list = append(list, one.of(j))
			}
		}
		return nil
	})
	if errors.Is(err, queue.ErrNotFound) {
		err = nil // it is older than jobs are kept
	}
	return list, err
}

// past returns the jobs that history has, or why it does not say.
func (s Routes) past(ctx context.Context) (list []seenJob, why string) {
	if s.Past.Find.History == nil {
		return nil, "there is no history: zones that no recent task looked at are missing"
	}
	of := map[jobs.TaskID]jobs.TaskInfo{}
	for _, book := range []string{bookRoll, bookStatus} {
		jobsOf, err := s.Past.Newest(ctx, book, pastLooked)
		if err != nil {
			return nil, "history is away: zones that no recent task looked at are missing"
		}
		if len(jobsOf) == pastLooked {
			why = fmt.Sprintf("only the newest %d jobs of each runbook in history were looked at: "+
				"`muster history ls --runbook` has all", pastLooked)
		}
		for _, j := range jobsOf {
			t, known := of[j.ID.Task()]
			if !known && j.Asked != nil && j.Asked.Ran != nil {
				t.Runbook, t.Ran = j.Runbook, j.Asked.Ran
			} else if !known {
				if t, _, err = s.Past.Find.Task(ctx, j.ID.Task()); err != nil {
					continue // its arguments are not known, so its zone is not
				}
			}
			of[j.ID.Task()] = t
			if one, is := described(t); is {
				one.past = true
				list = append(list, one.of(j.JobInfo))
			}
		}
	}
	return list, why
}

// described returns the common facts of all jobs of a task that works on the keys of a zone.
func described(t jobs.TaskInfo) (one seenJob, is bool) {
	if t.Ran == nil || t.Runbook != bookRoll && t.Runbook != bookStatus {
		return one, false
	}
	one.book = t.Runbook
	for _, a := range t.Ran.Arguments {
		switch a.Name {
		case "zone":
			one.name = plain(oneLine(a.Value))
		case "key":
			one.kind = oneLine(a.Value)
		}
	}
	return one, one.name != ""
}

// of returns a job of the task.
func (one seenJob) of(j jobs.JobInfo) seenJob {
	one.DNSSECJob = api.DNSSECJob{ID: j.ID, State: j.State, Outcome: j.Outcome, Started: j.Started,
		Finished: j.Finished, Said: oneLine(cmp.Or(j.Why, j.Note, j.Error))}
	one.next = j.Next
	return one
}

// plain returns the name of a DNS zone as all spell it.
func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// newest returns of each runbook the newest job about a zone on a host. A rollover under way comes
// before one that has ended: it refuses later ones. A look that has not ended has said nothing yet,
// so it comes after one that has. A job of Redis stands before the same one of history.
func newest(list []seenJob) []seenJob {
	later := func(one seenJob) int {
		if (one.State == jobs.Ended) == (one.book == bookRoll) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b seenJob) int {
		return cmp.Or(later(a)-later(b), strings.Compare(string(b.ID.Task()), string(a.ID.Task())))
	})
	type what struct{ name, host, book string }
	had := map[what]bool{}
	return slices.DeleteFunc(list, func(one seenJob) bool {
		w := what{one.name, one.ID.Host(), one.book}
		before := had[w]
		had[w] = true
		return before
	})
}

// add puts the words of a job into the list.
func (s Routes) add(ctx context.Context, l *api.DNSSECList, one seenJob) error {
	said, err := s.said(ctx, one)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(l.Zones, func(z api.DNSSECZone) bool {
		return z.Name == one.name && z.Host == one.ID.Host()
	})
	if i < 0 {
		i = len(l.Zones)
		l.Zones = append(l.Zones, api.DNSSECZone{Name: one.name, Host: one.ID.Host()})
	}
	if one.book == bookStatus {
		l.Zones[i].Status = statusOf(one.DNSSECJob, said)
		return nil
	}
	r := rollOf(one.DNSSECJob, one.kind, said)
	r.Next = one.next
	l.Zones[i].Roll = r
	return nil
}

// said returns the output of a job.
func (s Routes) said(ctx context.Context, one seenJob) (string, error) {
	if one.past {
		b, err := s.Past.Find.History.Output(ctx, one.ID)
		return string(b), err
	}
	zone, err := s.Reads.Jobs.JobZone(ctx, one.ID)
	if errors.Is(err, queue.ErrNotFound) {
		return "", nil // it has gone in this moment
	}
	if err != nil {
		return "", err
	}
	all, err := s.Reads.Outputs.Outputs(ctx, zone, []jobs.ID{one.ID})
	var b strings.Builder
	for _, p := range all[one.ID] {
		b.Write(p.Data)
	}
	return b.String(), err
}

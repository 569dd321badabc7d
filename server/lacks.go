package server

import (
	"context"

	"muster/fleet"
	"muster/jobs"
)

// lacksMax is how many jobs that wait for something are asked what it is: each costs some
// calls, and many of a task mostly wait for the same.
const lacksMax = 8

type (
	lacksInput struct {
		Task string `path:"task"`
	}
	lacksOutput struct{ Body LackList }
)

// waits answers GET /v1/tasks/{task}/waits.
func (s *Server) waits(ctx context.Context, in *lacksInput) (*lacksOutput, error) {
	t, past, err := s.taskAt(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	var l lacking
	if !past && t.State != jobs.TaskEnded {
		if err := s.queue.EachJob(ctx, t.Task, 0, jobsMax, l.all); err != nil {
			return nil, problem(err)
		}
	}
	list, err := s.lacks(ctx, l)
	if err != nil {
		return nil, problem(err)
	}
	return &lacksOutput{LackList{list}}, nil
}

// lacking gathers jobs that wait for what others have.
type lacking struct {
	ids  []jobs.ID // the first ones
	more []string  // hosts of the others
}

func (l *lacking) add(j jobs.JobInfo) {
	switch {
	case j.State != jobs.Blocked:
	case len(l.ids) < lacksMax:
		l.ids = append(l.ids, j.ID)
	default:
		l.more = append(l.more, j.Host)
	}
}

func (l *lacking) all(list []jobs.JobInfo) error {
	for _, j := range list {
		l.add(j)
	}
	return nil
}

// lacks says what they wait for. One that has gone on meanwhile is left out.
func (s *Server) lacks(ctx context.Context, l lacking) ([]jobs.Lack, error) {
	out := []jobs.Lack{}
	hosts := map[string][]string{}
	waits := map[string]string{}
	var order []string
	for _, id := range l.ids {
		j, err := s.queue.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		if j.State != jobs.Blocked || j.Why == "" {
			continue
		}
		if hosts[j.Why] == nil {
			order = append(order, j.Why)
		}
		hosts[j.Why], waits[j.Why] = append(hosts[j.Why], j.Host), j.Waits
	}
	for _, why := range order {
		out = append(out, jobs.Lack{Waits: waits[why], Why: why, Count: len(hosts[why]),
			Hosts: fleet.Fold(hosts[why])})
	}
	if len(l.more) > 0 {
		out = append(out, jobs.Lack{
			Why:   "they wait too, for this or the like; `muster job ID` tells of one",
			Count: len(l.more), Hosts: fleet.Fold(l.more)})
	}
	return out, nil
}

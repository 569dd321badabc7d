package server

import (
	"context"
	"net/http"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server/draft"
)

// comingWait is how long a retry waits for another one of the same hosts that is being
// submitted: longer than that keeps its hosts if its server has died.
const comingWait = 15 * time.Second

// leaveEarlier leaves out hosts that another task does again. Of a task that is just
// being submitted it is waited for whether it comes.
func (s *Server) leaveEarlier(ctx context.Context, r retrying, c *draft.Choice) error {
	wait := comingWait
	if r.body.DryRun {
		wait = 0
	}
	var list []jobs.Again
	coming := false
	err := s.await(ctx, wait, func() (over bool, err error) {
		list, err = s.queue.Submit.Retries.Retries(ctx, r.of, jobs.TaskID(r.body.ID), c.Hosts)
		coming = slices.ContainsFunc(list, func(a jobs.Again) bool { return a.Coming })
		return !coming, err
	})
	switch {
	case err != nil:
		return err
	case coming && !r.body.DryRun:
		// This server stops, or it takes too long: no task is named that may never come.
		return away("another retry of the same hosts is being submitted, and it is not known yet " +
			"whether it comes: nothing was made, give the order again")
	case r.body.Again:
		return nil
	}
	left := map[string]bool{}
	for _, a := range list {
		for _, host := range a.Hosts {
			left[host] = true
		}
	}
	c.Hosts = slices.DeleteFunc(c.Hosts, func(host string) bool { return left[host] })
	c.Earlier = list
	return nil
}

// alreadyRetried answers a retry of which nothing is left to do: with the earlier task, if
// it is one.
func (s *Server) alreadyRetried(ctx context.Context, r retrying, c draft.Choice, out api.Retried) (
	*retryOutput, error) {
	out.Already, out.Earlier = true, draft.Earlier(c.Earlier)
	out.TaskInfo = jobs.TaskInfo{Runbook: c.Spec.Runbook, Zones: []string{},
		Outcomes: jobs.NewCounts(), Terms: jobs.Terms{RetryOf: r.of}}
	if len(c.Earlier) == 1 && !r.body.DryRun {
		out.Task, out.State = c.Earlier[0].Task, jobs.TaskSubmitting
		if t, _, err := s.taskInfo(ctx, out.Task); err == nil {
			out.TaskInfo = t
		}
	}
	if !r.body.DryRun {
		s.logOrder("task was retried before", r.giver, "task", r.of, "as", c.Earlier[0].Task)
	}
	return &retryOutput{http.StatusOK, out}, nil
}

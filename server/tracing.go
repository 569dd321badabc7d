package server

import (
	"context"
	"time"

	"muster/api"
	"muster/history"
	"muster/history/courses"
	"muster/jobs"
	"muster/jobs/trace"
	"muster/server/spans"
	"muster/server/traces"
)

// newTracer makes what sends traces; nil if nobody wants them.
func newTracer(s *Server) (*traces.Tracer, error) {
	return traces.New(traces.Needs{Config: s.cfg.Traces, Version: s.cfg.Version, Name: s.who,
		Past: past{s.history}, Meters: s.meters.Traces, Log: s.log})
}

// past reads what traces need of history.
type past struct{ *history.Store }

func (p past) Courses(ctx context.Context, task jobs.TaskID, hosts []string) (
	map[string]api.Course, error) {
	return courses.Of(ctx, p.Store, task, hosts)
}

func (p past) Committed(ctx context.Context, task jobs.TaskID) (time.Time, error) {
	return courses.Committed(ctx, p.Store, task)
}

// tracesOf returns a function that names the traces of a job; nil: none are sent.
func tracesOf(c traces.Config) func(jobs.TaskInfo, jobs.JobInfo) *api.Traces {
	if c.Endpoint == "" {
		return nil
	}
	return func(t jobs.TaskInfo, j jobs.JobInfo) *api.Traces {
		parent := ""
		if t.Ran != nil {
			parent = t.Ran.Trace
		}
		out := &api.Traces{Job: trace.OfJob(j.ID).String(),
			Task: trace.Submit(t.Task, parent).Trace.String()}
		bad := j.State == jobs.Ended && spans.IsBad(j.Outcome)
		if wanted := c.IsWanted(t.Task, parent, bad); wanted || j.State == jobs.Ended {
			out.Sent = &wanted
		}
		return out
	}
}

package orders

import (
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/web"
)

type (
	cancelInput struct {
		web.Asked
		Task string `path:"task"`
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body *api.CancelRequest
	}
	cancelOutput struct{ Body jobs.Cancel }
)

// Cancels ends the jobs that do not run, and lets the running ones stop.
type Cancels interface {
	Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error)
	CancelJobs(ctx context.Context, ids []jobs.ID, note string) (jobs.Cancel, error)
}

// CancelRoutes cancels tasks, and jobs of them.
type CancelRoutes struct {
	Cancels Cancels
	Log     hclog.Logger
	Gone    func(context.Context, jobs.TaskID, error) error // makes the answer for a task that is gone
}

// Routes registers the routes of the resource.
func (s CancelRoutes) Routes(api huma.API) {
	cancel := web.Post("/v1/tasks/{task}/cancel", "Cancel a task, or some of its jobs")
	cancel.MaxBodyBytes = web.SubmitMax
	huma.Register(api, cancel, s.cancel)
}

// cancel ends a task, or some of its jobs.
func (s CancelRoutes) cancel(ctx context.Context, in *cancelInput) (*cancelOutput, error) {
	var b api.CancelRequest
	if in.Body != nil {
		b = *in.Body
	}
	id, err := jobs.ParseTaskID(in.Task)
	wrong := web.Mistakes("path.task", err)
	g, more := web.GiverOf(b.OrderRequest, "cancelled", in.Caller(), in.User)
	list, bad := jobsToCancel(b, id)
	if wrong = append(append(wrong, more...), bad...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	var did jobs.Cancel
	if len(list) > 0 {
		did, err = s.Cancels.CancelJobs(ctx, list, g.Note())
	} else {
		did, err = s.Cancels.Cancel(ctx, id, g.Note())
	}
	if err != nil {
		return nil, s.Gone(ctx, id, err)
	}
	web.LogOrder(s.Log, "task cancelled", g, "task", id, "jobs", len(list), "ended", did.Ended,
		"running", did.Running)
	return &cancelOutput{did}, nil
}

// jobsToCancel returns the jobs that a cancel names, each once. It returns none for the whole task.
func jobsToCancel(b api.CancelRequest, task jobs.TaskID) (list []jobs.ID, wrong []error) {
	for i, text := range b.Jobs {
		id, err := jobs.ParseID(string(text))
		if err == nil && id.Task() != task {
			err = fmt.Errorf("job %s is of another task than %s", id, task)
		}
		wrong = append(wrong, web.Mistakes(fmt.Sprintf("body.jobs[%d]", i), err)...)
		list = append(list, id)
	}
	for i, host := range b.Hosts {
		wrong = append(wrong, web.Mistakes(fmt.Sprintf("body.hosts[%d]", i), fleet.CheckName(host))...)
		list = append(list, jobs.NewID(task, host))
	}
	if b.Jobs != nil && len(b.Jobs) == 0 || b.Hosts != nil && len(b.Hosts) == 0 {
		wrong = append(wrong, web.Mistake("body.jobs",
			"an empty list: name jobs, or leave it out for the whole task"))
	}
	slices.Sort(list)
	return slices.Compact(list), wrong
}

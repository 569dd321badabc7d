package orders

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/orders"
	"muster/server/web"
	"muster/trust"
)

// TaskGates lists the jobs that wait for an answer of a person, and takes the answers.
type TaskGates interface {
	// GatedTasks lists the tasks with gates that have not ended.
	GatedTasks(ctx context.Context) ([]jobs.TaskID, error)

	// AnswerGates opens or refuses the gates at which jobs of a task stand, or those on
	// some hosts.
	AnswerGates(ctx context.Context, id jobs.TaskID, hosts []string, a jobs.GateAnswer,
		prove orders.Prover) (jobs.Answers, error)
}

// gatesMax bounds the jobs at a gate that an answer lists; it counts the others.
const gatesMax = 1000

type (
	gatesInput struct {
		Task string `query:"task" doc:"only jobs of this task"`
		On   string `query:"on" doc:"only jobs on what this selector picks"`
	}
	gatesOutput struct{ Body api.GateList }

	gateInput struct {
		web.Asked
		Task string `path:"task"`
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body *api.GateRequest
	}
	answersOutput struct{ Body jobs.Answers }
)

// GateRoutes shows which jobs stand at a gate, and answers whoever opens or refuses them.
type GateRoutes struct {
	Gates   TaskGates
	Tasks   Tasks
	Jobs    Jobs
	Log     hclog.Logger
	Keys    func() (serverkey.Keys, error) // of the servers
	HostsOn func(ctx context.Context, selector string) ([]fleet.Host, error)

	// SeenJobs returns those jobs of a list that the caller may see.
	SeenJobs func(ctx context.Context, list []jobs.JobInfo) ([]jobs.JobInfo, error)
}

// Routes registers the routes of the resource.
func (s GateRoutes) Routes(api huma.API) {
	const gate = "/v1/tasks/{task}/gates"
	huma.Register(api, web.Get("/v1/gates", "List jobs that wait at a gate"), s.gates)
	for path, does := range map[string]struct {
		what string
		do   func(context.Context, *gateInput) (*answersOutput, error)
	}{
		gate + "/open":   {"Open the gates of a task, or of some of its jobs", s.openGates},
		gate + "/refuse": {"Refuse the gates of a task, or of some of its jobs", s.refuseGates},
	} {
		o := web.Post(path, does.what)
		o.MaxBodyBytes = web.SubmitMax
		huma.Register(api, o, does.do)
	}
}

// gates lists the jobs that stand at a gate.
func (s GateRoutes) gates(ctx context.Context, in *gatesInput) (*gatesOutput, error) {
	tasks, err := s.gatedTasks(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	on, err := s.namesOn(ctx, in.On)
	if err != nil {
		return nil, err
	}
	out := &gatesOutput{api.GateList{Gates: []api.Standing{}}}
	for _, id := range tasks {
		err := s.standingAt(ctx, id, on, &out.Body)
		if err != nil && !(errors.Is(err, queue.ErrNotFound) && in.Task == "") { // it may just go
			return nil, web.Problem(err)
		}
	}
	return out, nil
}

// standingAt adds the jobs of a task that stand at a gate and that the caller sees. A task of which
// the caller sees no job is not there.
func (s GateRoutes) standingAt(ctx context.Context, id jobs.TaskID, on map[string]bool,
	l *api.GateList) error {
	t, err := s.Tasks.Task(ctx, id)
	if err != nil {
		return err
	}
	visible := web.ViewOf(ctx).All()
	err = s.Jobs.EachJob(ctx, id, 0, web.JobsMax, func(chunk []jobs.JobInfo) error {
		chunk, err := s.SeenJobs(ctx, chunk)
		if err != nil {
			return err
		}
		visible = visible || len(chunk) > 0
		for _, j := range chunk {
			if j.Gate != nil && (on == nil || on[j.Host]) {
				addStanding(l, t, j)
			}
		}
		return nil
	})
	if err == nil && !visible {
		return fmt.Errorf("task %s: %w", id, queue.ErrNotFound)
	}
	return err
}

func addStanding(l *api.GateList, t jobs.TaskInfo, j jobs.JobInfo) {
	if l.Total++; len(l.Gates) < gatesMax {
		l.Gates = append(l.Gates, api.Standing{Job: j.ID, Task: t.Task, Host: j.Host,
			Runbook: t.Runbook, Operator: t.Operator, State: j.State, Gate: *j.Gate})
	}
}

// gatedTasks returns the task of the question or, without one, all tasks with gates.
func (s GateRoutes) gatedTasks(ctx context.Context, task string) ([]jobs.TaskID, error) {
	if task == "" {
		list, err := s.Gates.GatedTasks(ctx)
		return list, web.Problem(err)
	}
	id, err := jobs.ParseTaskID(task)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("query.task", err))
	}
	return []jobs.TaskID{id}, nil
}

// namesOn returns the names of the hosts that a selector picks; nil without a selector.
func (s GateRoutes) namesOn(ctx context.Context, on string) (map[string]bool, error) {
	if on == "" {
		return nil, nil
	}
	list, err := s.HostsOn(ctx, on)
	picked := make(map[string]bool, len(list))
	for _, h := range list {
		picked[h.Name] = true
	}
	return picked, err
}

func (s GateRoutes) openGates(ctx context.Context, in *gateInput) (*answersOutput, error) {
	return s.answerGates(ctx, in, jobs.GateOpen, "opened")
}

func (s GateRoutes) refuseGates(ctx context.Context, in *gateInput) (*answersOutput, error) {
	return s.answerGates(ctx, in, jobs.GateRefuse, "refused")
}

// prove signs an answer in the name of the servers.
func (s GateRoutes) prove(id jobs.ID, step int, a jobs.GateAnswer) (string, error) {
	keys, err := s.Keys()
	if err != nil {
		return "", err
	}
	return trust.AnswerOf(id, step, a).Sign(keys)
}

// answerGates passes on the answer of a person who has looked.
func (s GateRoutes) answerGates(ctx context.Context, in *gateInput, word jobs.GateWord,
	done string) (*answersOutput, error) {
	var b api.GateRequest
	if in.Body != nil {
		b = *in.Body
	}
	id, err := jobs.ParseTaskID(in.Task)
	wrong := web.Mistakes("path.task", err)
	g, more := web.Order{Asked: in.Asked, User: in.User, Body: &b.OrderRequest}.Reasoned(done)
	list, bad := jobsToCancel(api.CancelRequest(b), id)
	if wrong = append(append(wrong, more...), bad...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	var hosts []string
	for _, job := range list {
		hosts = append(hosts, job.Host())
	}
	did, err := s.Gates.AnswerGates(ctx, id, hosts,
		jobs.GateAnswer{Word: word, Note: g.Note()}, s.prove)
	if err != nil {
		return nil, web.Problem(err)
	}
	anew := 0
	for _, one := range did.Answered {
		if !one.Already {
			anew++
		}
	}
	web.LogOrder(s.Log, "gates "+done, g, "task", id, "jobs", len(list), "answered", anew,
		"already", len(did.Answered)-anew, "elsewhere", len(did.Elsewhere))
	return &answersOutput{did}, nil
}

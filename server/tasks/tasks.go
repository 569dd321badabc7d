package tasks

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/waits"
	"muster/server/web"
)

type (
	tasksInput struct {
		web.Asked
		Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many"`
		Mine  bool   `query:"mine" doc:"only those of the newest 500 that the caller submitted"`
		User  string `header:"X-Muster-User" doc:"user of the operating system; counts only without a token"`
	}
	tasksOutput struct{ Body api.TaskList }

	taskInput struct {
		Task string `path:"task"`
		Wait string `query:"wait" doc:"time to wait until more jobs have ended: seconds, or 30s; at most 1m"`
		Seen int    `query:"seen" default:"-1" doc:"jobs that the caller knows to have ended"`
	}
	taskOutput struct{ Body jobs.TaskInfo }

	jobsInput struct {
		Task    string `path:"task"`
		State   string `query:"state" doc:"only jobs in this state"`
		Outcome string `query:"outcome" doc:"only jobs with this outcome"`
		Cursor  string `query:"cursor" doc:"the field next of the page before"`
		Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"most jobs of a page"`
	}
	jobsOutput struct{ Body api.JobList }

	jobInput struct {
		Job string `path:"job"`
	}
	jobOutput struct{ Body api.JobDetail }
)

// TaskRoutes answers questions about tasks.
type TaskRoutes struct {
	Reads Reads
	Find  Finder
	Until web.Waiter
	Why   *waits.Reader
	Stock *stock.Store

	// Seen returns those tasks of a list that the caller may see.
	Seen func(ctx context.Context, list []jobs.TaskInfo) ([]jobs.TaskInfo, error)
}

// Routes registers the routes of the resource.
func (s TaskRoutes) Routes(api huma.API) {
	const task = "/v1/tasks/{task}"
	huma.Register(api, web.Get("/v1/tasks", "List the newest tasks"), s.tasks)
	huma.Register(api, web.Get(task, "Show a task, or wait for it to change"), s.task)
	huma.Register(api, web.Get(task+"/jobs", "List the jobs of a task"), s.jobs)
	huma.Register(api, web.Get(task+"/waits", "List what jobs wait for"), s.waits)
}

func (s TaskRoutes) tasks(ctx context.Context, in *tasksInput) (*tasksOutput, error) {
	if in.Mine {
		return s.tasksOfCaller(ctx, in)
	}
	list, err := s.Reads.Tasks.Tasks(ctx, in.Limit)
	if err == nil {
		list, err = s.Seen(ctx, list)
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	return &tasksOutput{api.TaskList{Tasks: list}}, nil
}

// ownTasksMax bounds the newest tasks among which tasksOfCaller looks.
const ownTasksMax = 500

// tasksOfCaller lists the newest tasks of the caller. An operator with a proven name and one who
// merely claims it are two.
func (s TaskRoutes) tasksOfCaller(ctx context.Context, in *tasksInput) (*tasksOutput, error) {
	name, proven, err := web.Operator(in.Caller(), "", in.User)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("header.X-Muster-User", err))
	}
	list, err := s.Reads.Tasks.Tasks(ctx, ownTasksMax)
	if err == nil {
		list, err = s.Seen(ctx, list)
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	list = slices.DeleteFunc(list, func(t jobs.TaskInfo) bool {
		return t.Operator != name || t.Proven != proven
	})
	return &tasksOutput{api.TaskList{Tasks: list[:min(in.Limit, len(list))]}}, nil
}

func (s TaskRoutes) task(ctx context.Context, in *taskInput) (*taskOutput, error) {
	id, err := jobs.ParseTaskID(in.Task)
	wrong := web.Mistakes("path.task", err)
	wait, err := web.ParseWait(in.Wait)
	if wrong = append(wrong, web.Mistakes("query.wait", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	t, err := s.awaitTask(ctx, id, in.Seen, wait)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &taskOutput{t}, nil
}

// awaitTask returns the task at once if wait is zero. Else it waits until the task has ended, more
// jobs have ended than the client has seen, or the time is over.
func (s TaskRoutes) awaitTask(ctx context.Context, id jobs.TaskID, seen int,
	wait time.Duration) (jobs.TaskInfo, error) {
	var t jobs.TaskInfo
	err := s.Until.Await(ctx, wait, func() (bool, error) {
		var err error
		if t, _, err = s.Find.Task(ctx, id); err != nil {
			return false, err
		}
		if seen < 0 {
			seen = t.Outcomes.Sum()
		}
		stopped := t.State == jobs.TaskStopped && t.Rollout.Begun == 0
		over := t.State == jobs.TaskEnded || t.Forgotten || stopped
		return over || t.Outcomes.Sum() != seen, nil
	})
	return t, err
}

// errPageFull ends the walk over a task.
var errPageFull = errors.New("the page is full")

func (s TaskRoutes) jobs(ctx context.Context, in *jobsInput) (*jobsOutput, error) {
	id, from, err := checkPage(in)
	if err != nil {
		return nil, err
	}
	out := &jobsOutput{api.JobList{Jobs: []jobs.JobInfo{}}}
	place := from // of the next job in the frozen host list
	most := web.JobsMax
	if in.State == "" && in.Outcome == "" {
		most = in.Limit // nothing is left out, so no more are needed
	}
	err = s.Find.EachJob(ctx, id, from, most, func(chunk []jobs.JobInfo) error {
		if err := s.Why.ExplainAll(ctx, chunk); err != nil {
			return err
		}
		for _, j := range chunk {
			if len(out.Body.Jobs) == in.Limit {
				out.Body.Next = strconv.Itoa(place)
				return errPageFull
			}
			place++
			if (in.State == "" || string(j.State) == in.State) &&
				(in.Outcome == "" || string(j.Outcome) == in.Outcome) {
				j.HostLeft = s.Stock.HasLeft(j)
				out.Body.Jobs = append(out.Body.Jobs, j)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, web.Problem(err)
	}
	s.Find.Marked(ctx, id, out.Body.Jobs)
	return out, nil
}

// checkPage returns the task and the place of a page of jobs, or all mistakes of the question.
func checkPage(in *jobsInput) (id jobs.TaskID, from int, err error) {
	id, err = jobs.ParseTaskID(in.Task)
	wrong := web.Mistakes("path.task", err)
	if in.Cursor != "" {
		if from, err = strconv.Atoi(in.Cursor); err != nil || from < 0 {
			wrong = append(wrong, web.Mistake("query.cursor", "%q: want the `next` of another page",
				web.Clip(in.Cursor)))
		}
	}
	if in.State != "" && !slices.Contains(jobs.States(), jobs.State(in.State)) {
		wrong = append(wrong, web.Mistake("query.state", "%q: want one of %v", web.Clip(in.State),
			jobs.States()))
	}
	if in.Outcome != "" && !jobs.Outcome(in.Outcome).Valid() {
		wrong = append(wrong, web.Mistake("query.outcome", "%q: want one of %v", web.Clip(in.Outcome),
			jobs.Outcomes()))
	}
	if len(wrong) > 0 {
		return id, from, web.Refusal(wrong)
	}
	return id, from, nil
}

package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
)

const (
	// waitMax is how long a client may wait for a task to change.
	waitMax = time.Minute
	// The looks at a task that somebody waits for become rarer.
	pollFirst = 100 * time.Millisecond
	pollLast  = time.Second
	// jobsMax is how many jobs are read at once.
	jobsMax = 500
)

type (
	tasksInput struct {
		Asked
		Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many"`
		Mine  bool   `query:"mine" doc:"only those of the newest 500 that the caller submitted"`
		User  string `header:"X-Muster-User" doc:"user of the operating system; counts only without a token"`
	}
	tasksOutput struct{ Body api.TaskList }

	taskInput struct {
		Task string `path:"task"`
		Wait string `query:"wait" doc:"answer later, when more jobs have ended: seconds, or 30s; at most 1m"`
		Seen int    `query:"seen" default:"-1" doc:"jobs that the caller knows to have ended"`
	}
	taskOutput struct{ Body jobs.TaskInfo }

	jobsInput struct {
		Task    string `path:"task"`
		State   string `query:"state" doc:"only jobs in this state"`
		Outcome string `query:"outcome" doc:"only jobs with this outcome"`
		Cursor  string `query:"cursor" doc:"next of the page before"`
		Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"jobs of a page at most"`
	}
	jobsOutput struct{ Body api.JobList }

	jobInput struct {
		Job string `path:"job"`
	}
	jobOutput struct{ Body api.JobDetail }
)

func (s *Server) tasks(ctx context.Context, in *tasksInput) (*tasksOutput, error) {
	if in.Mine {
		return s.tasksOfCaller(ctx, in)
	}
	list, err := s.queue.Read.Tasks.Tasks(ctx, in.Limit)
	if err != nil {
		return nil, problem(err)
	}
	return &tasksOutput{api.TaskList{Tasks: list}}, nil
}

// ownTasksMax is how many of the newest tasks are looked at for those of one operator.
const ownTasksMax = 500

// tasksOfCaller lists the newest tasks of who asks. An operator whom a token proves and one
// of the same name whom nothing proves are two.
func (s *Server) tasksOfCaller(ctx context.Context, in *tasksInput) (*tasksOutput, error) {
	name, proven, err := operator(in.who, "", in.User)
	if err != nil {
		return nil, refusal(mistakes("header.X-Muster-User", err))
	}
	list, err := s.queue.Read.Tasks.Tasks(ctx, ownTasksMax)
	if err != nil {
		return nil, problem(err)
	}
	list = slices.DeleteFunc(list, func(t jobs.TaskInfo) bool {
		return t.Operator != name || t.Proven != proven
	})
	return &tasksOutput{api.TaskList{Tasks: list[:min(in.Limit, len(list))]}}, nil
}

func (s *Server) task(ctx context.Context, in *taskInput) (*taskOutput, error) {
	id, err := jobs.ParseTaskID(in.Task)
	wrong := mistakes("path.task", err)
	wait, err := parseWait(in.Wait)
	if wrong = append(wrong, mistakes("query.wait", err)...); len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	t, err := s.awaitTask(ctx, id, in.Seen, wait)
	if err != nil {
		return nil, problem(err)
	}
	return &taskOutput{t}, nil
}

func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if _, err := strconv.Atoi(text); err == nil {
		text += "s"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > waitMax {
		return 0, fmt.Errorf("%q: want seconds, 0 to %g", clip(text), waitMax.Seconds())
	}
	return d, nil
}

// awaitTask answers at once, or when the task has ended, or more of its jobs
// than were seen, or when the time to wait is over.
func (s *Server) awaitTask(ctx context.Context, id jobs.TaskID, seen int,
	wait time.Duration) (jobs.TaskInfo, error) {
	var t jobs.TaskInfo
	err := s.await(ctx, wait, func() (bool, error) {
		var err error
		if t, _, err = s.taskInfo(ctx, id); err != nil {
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

func (s *Server) jobs(ctx context.Context, in *jobsInput) (*jobsOutput, error) {
	id, from, err := checkPage(in)
	if err != nil {
		return nil, err
	}
	out := &jobsOutput{api.JobList{Jobs: []jobs.JobInfo{}}}
	place := from // of the next job in the frozen host list
	most := jobsMax
	if in.State == "" && in.Outcome == "" {
		most = in.Limit // nothing is left out, so no more are needed
	}
	err = s.eachJob(ctx, id, from, most, func(chunk []jobs.JobInfo) error {
		if err := s.times.why.ExplainAll(ctx, chunk); err != nil {
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
				j.HostLeft = s.stock.HasLeft(j)
				out.Body.Jobs = append(out.Body.Jobs, j)
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPageFull) {
		return nil, problem(err)
	}
	return out, nil
}

// checkPage reports everything that is wrong with a question for jobs.
func checkPage(in *jobsInput) (id jobs.TaskID, from int, err error) {
	id, err = jobs.ParseTaskID(in.Task)
	wrong := mistakes("path.task", err)
	if in.Cursor != "" {
		if from, err = strconv.Atoi(in.Cursor); err != nil || from < 0 {
			wrong = append(wrong, mistake("query.cursor", "%q: want the `next` of another page",
				clip(in.Cursor)))
		}
	}
	if in.State != "" && !slices.Contains(jobs.States(), jobs.State(in.State)) {
		wrong = append(wrong, mistake("query.state", "%q: want one of %v", clip(in.State), jobs.States()))
	}
	if in.Outcome != "" && !jobs.Outcome(in.Outcome).Valid() {
		wrong = append(wrong, mistake("query.outcome", "%q: want one of %v", clip(in.Outcome),
			jobs.Outcomes()))
	}
	if len(wrong) > 0 {
		return id, from, refusal(wrong)
	}
	return id, from, nil
}

func (s *Server) job(ctx context.Context, in *jobInput) (*jobOutput, error) {
	id, err := jobs.ParseID(in.Job)
	if err != nil {
		return nil, refusal(mistakes("path.job", err))
	}
	j, err := s.queue.Read.Jobs.Job(ctx, id)
	if err != nil {
		if j, err = s.orPast(ctx, id, err); err != nil {
			return nil, s.gone(ctx, id.Task(), err)
		}
	}
	j.HostLeft = s.stock.HasLeft(j)
	if j, err = s.times.why.Explained(ctx, j); err != nil {
		return nil, problem(err)
	}
	out := &jobOutput{api.JobDetail{JobInfo: j}}
	t, past, err := s.taskInfo(ctx, id.Task())
	switch {
	case err == nil:
		out.Body.Of = ofTask(t)
		if !past {
			out.Body.Awaits, err = s.times.why.AwaitedBy(ctx, t, j)
		}
		if err != nil {
			return nil, problem(err)
		}
	case !errors.Is(err, queue.ErrNotFound):
		return nil, problem(err)
	}
	return out, nil
}

package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/fold"
)

// errNoHistory is the answer of a server without one.
var errNoHistory = errors.New("this server keeps no history: history.url is none")

type (
	// PastFilter picks jobs that have ended. It is exported for the API library, which
	// looks into no others.
	PastFilter struct {
		Customer string `query:"customer"`
		Host     string `query:"host"`
		Runbook  string `query:"runbook"`
		Operator string `query:"operator"`
		Outcome  string `query:"outcome"`
		Task     string `query:"task"`
		From     string `query:"from" doc:"RFC 3339; jobs that ended at it or later"`
		To       string `query:"to" doc:"RFC 3339; jobs that ended before it"`
	}
	pastInput struct {
		PastFilter

		Cursor string `query:"cursor" doc:"next of the page before"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"jobs of a page at most"`
	}
	pastOutput         struct{ Body api.PastJobs }
	historyStateOutput struct{ Body api.HistoryState }
	reportInput        struct {
		Task string `path:"task"`
	}
	reportOutput struct{ Body api.Report }
)

// registerHistory names the routes about what happened.
func (s *Server) registerHistory(api huma.API) {
	get := func(path, what string) huma.Operation { return operation(http.MethodGet, path, what) }
	huma.Register(api, get("/v1/history", "List jobs that have ended"), s.past)
	huma.Register(api, get("/v1/history/state", "Show how far history was written, and what it lacks"),
		s.historyState)
	huma.Register(api, raw(get("/v1/history/export", "All jobs that have ended, a line of JSON each"),
		"application/jsonl"), s.export)
	foresee := operation(http.MethodPost, "/v1/plan", "Tell when a task would be done")
	foresee.MaxBodyBytes = submitMax
	huma.Register(api, foresee, s.foresee)
	huma.Register(api, get("/v1/plan/calibration", "Compare plans with what happened"), s.calibrate)
	huma.Register(api, get("/v1/tasks/{task}/report", "Tell what became of every host of a task"),
		s.report)
	huma.Register(api, get("/v1/jobs/{job}/course", "Show attempts and steps of a job"), s.course)
	huma.Register(api, get("/v1/history/events", "List what happened to a task or a job"),
		s.pastEvents)
}

// filter reads the conditions, or reports everything that is wrong with them.
func (f PastFilter) filter() (history.Filter, error) {
	out := history.Filter{Customer: f.Customer, Host: f.Host, Runbook: f.Runbook, Operator: f.Operator,
		Outcome: jobs.Outcome(f.Outcome)}
	var wrong []error
	instant := func(name, text string) (t time.Time) {
		if text == "" {
			return t
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			wrong = append(wrong, mistake("query."+name, "%q: want RFC 3339, such as 2026-12-24T22:00:00Z",
				clip(text)))
		}
		return t
	}
	out.From, out.To = instant("from", f.From), instant("to", f.To)
	if f.Outcome != "" && !out.Outcome.Valid() {
		wrong = append(wrong, mistake("query.outcome", "%q: want one of %v", clip(f.Outcome),
			jobs.Outcomes()))
	}
	for name, value := range map[string]string{"customer": f.Customer, "host": f.Host,
		"runbook": f.Runbook, "operator": f.Operator} {
		if value != "" {
			wrong = append(wrong, mistakes("query."+name, fleet.CheckName(value))...)
		}
	}
	if f.Task != "" {
		var err error
		out.Task, err = jobs.ParseTaskID(f.Task)
		wrong = append(wrong, mistakes("query.task", err)...)
	}
	if !out.From.IsZero() && !out.To.IsZero() && !out.From.Before(out.To) {
		wrong = append(wrong, mistake("query.to", "%s is not after from, %s", f.To, f.From))
	}
	if len(wrong) > 0 {
		return out, refusal(wrong)
	}
	return out, nil
}

func (s *Server) past(ctx context.Context, in *pastInput) (*pastOutput, error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if s.history == nil {
		return nil, problem(errNoHistory)
	}
	list, next, err := s.history.Jobs(ctx, f, in.Cursor, in.Limit)
	if err != nil {
		return nil, problem(err)
	}
	if list == nil {
		list = []api.PastJob{}
	}
	return &pastOutput{api.PastJobs{Jobs: list, Next: next}}, nil
}

func (s *Server) historyState(ctx context.Context, _ *nothing) (*historyStateOutput, error) {
	if s.history == nil {
		return nil, problem(errNoHistory)
	}
	out := &historyStateOutput{api.HistoryState{Where: s.history.Where()}}
	var err error
	if out.Body.Streams, err = s.history.Positions(ctx); err != nil {
		return nil, problem(err)
	}
	if out.Body.Gaps, err = s.history.Gaps(ctx); err != nil {
		return nil, problem(err)
	}
	return out, nil
}

// export answers with all jobs that a filter picks. The first page is read before the
// answer begins, so that what is wrong then is said as a problem. Whoever gets no last
// line {"end":true} has not got all.
func (s *Server) export(ctx context.Context, in *PastFilter) (*huma.StreamResponse, error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if s.history == nil {
		return nil, problem(errNoHistory)
	}
	list, next, err := s.history.Jobs(ctx, f, "", api.PageMax)
	if err != nil {
		return nil, problem(err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		r, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "application/jsonl")
		rc, enc := http.NewResponseController(w), json.NewEncoder(w)
		for {
			if rc.SetWriteDeadline(time.Now().Add(answerTimeout)) != nil {
				return
			}
			for _, j := range list {
				if enc.Encode(j) != nil {
					return // the client has gone
				}
			}
			if next == "" {
				_ = enc.Encode(map[string]bool{"end": true})
				return
			}
			if list, next, err = s.history.Jobs(r.Context(), f, next, api.PageMax); err != nil {
				s.log.Warn("export of history broke off", "error", err)
				return
			}
		}
	}}, nil
}

// report tells what became of every host of a task: by Redis, as long as that knows
// the jobs, else by history.
func (s *Server) report(ctx context.Context, in *reportInput) (*reportOutput, error) {
	t, past, err := s.taskAt(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	var r api.Report
	if past {
		r, err = s.history.Report(ctx, t.Task)
		if t.Forgotten {
			r = history.NewReport(t, r.Jobs)
		}
	} else {
		r, err = s.presentReport(ctx, t)
	}
	if err != nil {
		return nil, problem(err)
	}
	if r.Jobs == nil {
		r.Jobs = []api.PastJob{}
	}
	return &reportOutput{r}, nil
}

func (s *Server) presentReport(ctx context.Context, t jobs.TaskInfo) (api.Report, error) {
	var list []api.PastJob
	stock := s.stock.Now()
	err := s.queue.Read.Jobs.EachJob(ctx, t.Task, 0, jobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			one := api.PastJob{JobInfo: j, Runbook: t.Runbook, Operator: t.Operator}
			if stock != nil {
				if h, ok := stock.Host(j.Host); ok {
					one.Zone, one.Customer, one.Model = h.Zone, h.Customer, h.Labels["model"]
				}
			}
			list = append(list, one)
		}
		return nil
	})
	return history.NewReport(t, list), err
}

// taskAt is the task that a path names, as taskInfo is; the error is ready to be answered.
func (s *Server) taskAt(ctx context.Context, text string) (t jobs.TaskInfo, past bool, err error) {
	id, err := jobs.ParseTaskID(text)
	if err != nil {
		return t, false, refusal(mistakes("path.task", err))
	}
	t, past, err = s.taskInfo(ctx, id)
	return t, past, problem(err)
}

// taskInfo is a task as Redis knows it, or, where that has forgotten its jobs, as
// history does; past says so.
func (s *Server) taskInfo(ctx context.Context, id jobs.TaskID) (t jobs.TaskInfo, past bool,
	err error) {
	t, err = s.queue.Read.Tasks.Task(ctx, id)
	missing := errors.Is(err, queue.ErrNotFound)
	if s.history == nil || err != nil && !missing ||
		!missing && (t.Total > 0 || t.State == jobs.TaskSubmitting) {
		return t, false, err
	}
	was, failed := s.history.Task(ctx, id)
	switch {
	case failed == nil:
		was.Forgotten = was.State != jobs.TaskEnded
		return was, true, nil
	case errors.Is(failed, history.ErrNotFound):
		return t, false, err
	case missing:
		return t, false, failed // it may be there
	}
	return t, false, nil
}

// pastJobs are the jobs of a task as history has them, by host.
func (s *Server) pastJobs(ctx context.Context, id jobs.TaskID) ([]jobs.JobInfo, error) {
	r, err := s.history.Report(ctx, id)
	if err != nil {
		return nil, err
	}
	out := make([]jobs.JobInfo, len(r.Jobs))
	for i, j := range r.Jobs {
		out[i] = j.JobInfo
	}
	return out, nil
}

// orPast is a job as history has it, if Redis has forgotten it.
func (s *Server) orPast(ctx context.Context, id jobs.ID, err error) (jobs.JobInfo, error) {
	if s.history == nil || !errors.Is(err, queue.ErrNotFound) {
		return jobs.JobInfo{}, err
	}
	j, failed := s.history.Job(ctx, id)
	if errors.Is(failed, history.ErrNotFound) {
		return jobs.JobInfo{}, err
	}
	return j.JobInfo, failed
}

// gone is the answer where Redis does not know a task, or a job of it: what history knows of
// a task that Redis has forgotten. Other errors are answered as they are.
func (s *Server) gone(ctx context.Context, id jobs.TaskID, err error) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return problem(err)
	}
	t, past, failed := s.taskInfo(ctx, id)
	switch {
	case failed != nil, !past: // of one that Redis knows it is the job that is not there
		return problem(err)
	case !t.Forgotten:
		when := "has ended" // the last that was heard of it does not say when
		if !t.Finished.IsZero() {
			when = "ended at " + t.Finished.String()
		}
		return huma.Error404NotFound(fmt.Sprintf("%s: the task %s, and Redis keeps no more of it; "+
			"history does: `muster task %s`", err, when, id))
	}
	return huma.Error404NotFound(fmt.Sprintf("%s: the task was forgotten by Redis before it ended; "+
		"%d of its %d jobs are known to have ended: `muster task %s`; what became of the others is not "+
		"known, and no more will come of them", err, t.Outcomes.Sum(), t.Total, id))
}

// pastSummary folds the jobs of a task that history has.
func (s *Server) pastSummary(ctx context.Context, t jobs.TaskInfo, excerpt int) (api.Summary,
	error) {
	list, err := s.pastJobs(ctx, t.Task)
	if err != nil {
		return api.Summary{}, err
	}
	f := fold.New(excerpt)
	for _, j := range list {
		said, err := s.history.Output(ctx, j.ID)
		if err != nil {
			return api.Summary{}, err
		}
		f.Add(j, said, s.stock.Address(j.Host))
	}
	groups, err := s.showGroups(ctx, nil, f)
	return api.Summary{Task: t, Groups: groups}, err
}

// eachJob gives the jobs of a task to f, from Redis or, where that has forgotten them,
// from history.
func (s *Server) eachJob(ctx context.Context, id jobs.TaskID, from, most int,
	f func([]jobs.JobInfo) error) error {
	_, past, err := s.taskInfo(ctx, id)
	if err != nil {
		return err
	}
	if !past {
		return s.queue.Read.Jobs.EachJob(ctx, id, from, most, f)
	}
	list, err := s.pastJobs(ctx, id)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(list[min(from, len(list)):], max(most, 1)) {
		if err := f(part); err != nil {
			return err
		}
	}
	return nil
}

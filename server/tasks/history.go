package tasks

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/history"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
)

type (
	// PastFilter picks jobs that have ended. It is exported because the API library reads only
	// exported structs.
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

		Cursor string `query:"cursor" doc:"the field next of the page before"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"most jobs of a page"`
	}
	pastOutput         struct{ Body api.PastJobs }
	historyStateOutput struct{ Body api.HistoryState }
	reportInput        struct {
		Task string `path:"task"`
	}
	reportOutput struct{ Body api.Report }
)

// HistoryRoutes answers questions from history.
type HistoryRoutes struct {
	Reads Reads
	Find  Finder
	Stock *stock.Store
	Log   hclog.Logger

	Rights Rights
}

// Routes registers the routes of the resource.
func (s HistoryRoutes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/history", "List jobs that have ended"), s.past)
	huma.Register(api, web.Get("/v1/history/state",
		"Show how far history was written, and what it lacks"),
		s.historyState)
	huma.Register(api, web.Raw(web.Get("/v1/history/export",
		"All jobs that have ended, a line of JSON each"),
		"application/jsonl"), s.export)
	huma.Register(api, web.Get("/v1/tasks/{task}/report", "Tell what became of every host of a task"),
		s.report)
	huma.Register(api, web.Get("/v1/jobs/{job}/course", "Show attempts and steps of a job"), s.course)
	huma.Register(api, web.Get("/v1/history/events",
		"List what happened: to a task or a job, or in a time"), s.pastEvents)
}

// filter returns the conditions, or all their mistakes.
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
			wrong = append(wrong, web.Mistake("query."+name,
				"%q: want RFC 3339, such as 2026-12-24T22:00:00Z",
				web.Clip(text)))
		}
		return t
	}
	out.From, out.To = instant("from", f.From), instant("to", f.To)
	if f.Outcome != "" && !out.Outcome.Valid() {
		wrong = append(wrong, web.Mistake("query.outcome", "%q: want one of %v", web.Clip(f.Outcome),
			jobs.Outcomes()))
	}
	for name, value := range map[string]string{"customer": f.Customer, "host": f.Host,
		"runbook": f.Runbook, "operator": f.Operator} {
		if value != "" {
			wrong = append(wrong, web.Mistakes("query."+name, fleet.CheckName(value))...)
		}
	}
	if f.Task != "" {
		var err error
		out.Task, err = jobs.ParseTaskID(f.Task)
		wrong = append(wrong, web.Mistakes("query.task", err)...)
	}
	if !out.From.IsZero() && !out.To.IsZero() && !out.From.Before(out.To) {
		wrong = append(wrong, web.Mistake("query.to", "%s is not after from, %s", f.To, f.From))
	}
	if len(wrong) > 0 {
		return out, web.Refusal(wrong)
	}
	return out, nil
}

func (s HistoryRoutes) past(ctx context.Context, in *pastInput) (*pastOutput, error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if s.Find.History == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	list, next, err := s.page(ctx, f, in.Cursor, in.Limit)
	if err != nil {
		return nil, web.Problem(err)
	}
	if list == nil {
		list = []api.PastJob{}
	}
	return &pastOutput{api.PastJobs{Jobs: list, Next: next}}, nil
}

func (s HistoryRoutes) historyState(ctx context.Context, _ *web.Nothing) (*historyStateOutput,
	error) {
	if s.Find.History == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	out := &historyStateOutput{api.HistoryState{Where: s.Find.History.Where()}}
	var err error
	if out.Body.Streams, err = s.Find.History.Positions(ctx); err != nil {
		return nil, web.Problem(err)
	}
	if out.Body.Gaps, err = s.Find.History.Gaps(ctx); err != nil {
		return nil, web.Problem(err)
	}
	return out, nil
}

// export answers with all jobs that a filter picks. It reads the first page before it begins the
// answer, so that an error of that page is a problem of RFC 9457. An answer without the last line
// {"end":true} is not complete.
func (s HistoryRoutes) export(ctx context.Context, in *PastFilter) (*huma.StreamResponse, error) {
	f, err := in.filter()
	if err != nil {
		return nil, err
	}
	if s.Find.History == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	list, next, err := s.page(ctx, f, "", api.PageMax)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &huma.StreamResponse{Body: func(ctx huma.Context) {
		_, w := humago.Unwrap(ctx)
		w.Header().Set("Content-Type", "application/jsonl")
		rc, enc := http.NewResponseController(w), json.NewEncoder(w)
		for {
			if rc.SetWriteDeadline(time.Now().Add(web.AnswerTimeout)) != nil {
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
			if list, next, err = s.page(ctx.Context(), f, next, api.PageMax); err != nil {
				s.Log.Warn("export of history broke off", "error", err)
				return
			}
		}
	}}, nil
}

// report answers with the outcome of every host of a task: from Redis, as long as that knows the
// jobs, else from history.
func (s HistoryRoutes) report(ctx context.Context, in *reportInput) (*reportOutput, error) {
	t, past, err := s.Find.At(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	var r api.Report
	if past {
		r, err = s.Find.History.Report(ctx, t.Task)
		if t.Forgotten {
			r = history.NewReport(t, r.Jobs)
		}
	} else {
		r, err = s.presentReport(ctx, t)
	}
	if err != nil {
		return nil, web.Problem(err)
	}
	if r.Jobs == nil {
		r.Jobs = []api.PastJob{}
	}
	return &reportOutput{r}, nil
}

func (s HistoryRoutes) presentReport(ctx context.Context, t jobs.TaskInfo) (api.Report, error) {
	var list []api.PastJob
	stock, marks := s.Stock.Now(), s.Find.marks(ctx, t.Task)
	err := s.Reads.Jobs.EachJob(ctx, t.Task, 0, web.JobsMax, func(chunk []jobs.JobInfo) error {
		for _, j := range chunk {
			one := api.PastJob{JobInfo: j, Runbook: t.Runbook, Operator: t.Operator}
			if j.State == jobs.Ended {
				one.Proof = marks[j.Host]
			}
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

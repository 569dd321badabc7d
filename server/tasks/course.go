package tasks

import (
	"context"
	"encoding/json"
	"strconv"

	"muster/api"
	"muster/history"
	"muster/internal/wording"
	"muster/jobs"
	"muster/server/web"
)

type (
	courseOutput    struct{ Body api.Course }
	pastEventsInput struct {
		Of     string `query:"of" required:"true" doc:"id of a task or of a job"`
		Event  string `query:"event" pattern:"^[a-z-]{0,40}$" doc:"only this event, such as order-doubted"`
		Cursor string `query:"cursor" doc:"the field next of the page before"`
		Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"500" doc:"most events of a page"`
	}
	pastEventsOutput struct{ Body api.PastEvents }
)

// course answers GET /v1/jobs/{job}/course, from history.
func (s HistoryRoutes) course(ctx context.Context, in *jobInput) (*courseOutput, error) {
	id, err := jobs.ParseID(in.Job)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.job", err))
	}
	if s.Find.History == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	c, err := s.Find.History.Course(ctx, id)
	if err == nil {
		c.Doubted, err = s.doubted(ctx, id)
	}
	return &courseOutput{c}, web.Problem(err)
}

// doubtMax bounds the words of a node about an order, in bytes.
const doubtMax = 300

// doubted says why a node has doubted the order of a job; empty: no event says so. A node tells it
// once for each task, with the first job that it noticed. A caller who may not see that job gets no
// words of it.
func (s HistoryRoutes) doubted(ctx context.Context, id jobs.ID) (string, error) {
	about := history.About{Task: id.Task(), Event: "order-doubted"}
	list, _, err := s.Find.History.Events(ctx, about, 0, 1)
	if err != nil || len(list) == 0 {
		return "", err
	}
	var said struct{ Mode, Note string }
	detail, _ := list[0].Detail.(json.RawMessage)
	_ = json.Unmarshal(detail, &said) // a zone may write anything
	words := "a node doubted the order of this task"
	if said.Mode == "warn" {
		words += ", and ran its jobs all the same (mode warn)"
	}
	if !web.ViewOf(ctx).All() && list[0].Object != string(id) {
		return words, nil
	}
	return words + ": " + wording.ClipTo(said.Note, doubtMax), nil
}

// pastEvents answers GET /v1/history/events.
func (s HistoryRoutes) pastEvents(ctx context.Context, in *pastEventsInput) (*pastEventsOutput,
	error) {
	of, wrong := aboutWhat(in.Of)
	skip := 0
	if in.Cursor != "" {
		var err error
		if skip, err = strconv.Atoi(in.Cursor); err != nil || skip < 0 {
			wrong = append(wrong, web.Mistake("query.cursor", "%q: want the `next` of another page",
				web.Clip(in.Cursor)))
		}
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	if s.Find.History == nil {
		return nil, web.Problem(web.ErrNoHistory)
	}
	if seen, err := s.Rights.Sees(ctx, of.Task, of.Host); err != nil || !seen {
		return &pastEventsOutput{api.PastEvents{Events: []jobs.Happening{}}}, web.Problem(err)
	}
	of.Event = in.Event
	list, more, err := s.Find.History.Events(ctx, of, skip, in.Limit)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &pastEventsOutput{api.PastEvents{Events: list}}
	if more {
		out.Body.Next = strconv.Itoa(skip + len(list))
	}
	return out, nil
}

// aboutWhat reads the id of a task or of a job.
func aboutWhat(text string) (history.About, []error) {
	if task, err := jobs.ParseTaskID(text); err == nil {
		return history.About{Task: task}, nil
	}
	id, err := jobs.ParseID(text)
	if err != nil {
		return history.About{}, []error{web.Mistake("query.of", "%q: want the id of a task, such as "+
			"0wcy7y2fb2, or of a job, such as 0wcy7y2fb2:fw001", web.Clip(text))}
	}
	return history.About{Task: id.Task(), Host: id.Host()}, nil
}

// ofTask returns the part of a task that a job shows: the request and the operator. The selector
// and the reason may name hosts that the caller does not see: they are of a task that is seen.
func ofTask(t jobs.TaskInfo, seen bool) *api.OfTask {
	if !seen {
		t.On, t.Reason = "", ""
	}
	return &api.OfTask{Task: t.Task, Runbook: t.Runbook, Operator: t.Operator,
		Asked: api.Asked{On: t.On, Proven: t.Proven, Reason: t.Reason, Ran: t.Ran}}
}

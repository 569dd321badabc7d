package tasks

import (
	"context"
	"encoding/json"

	"muster/api"
	"muster/history/happened"
	"muster/internal/wording"
	"muster/jobs"
	"muster/server/web"
)

type courseOutput struct{ Body api.Course }

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
	list, _, err := happened.List(ctx, s.Find.History, happened.Filter{Task: id.Task(),
		Kinds: []string{"order-doubted"}}, "", 1)
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

// ofTask returns the part of a task that a job shows: the request and the operator. The selector
// and the reason may name hosts that the caller does not see: they are of a task that is seen.
func ofTask(t jobs.TaskInfo, seen bool) *api.OfTask {
	if !seen {
		t.On, t.Reason = "", ""
	}
	return &api.OfTask{Task: t.Task, Runbook: t.Runbook, Operator: t.Operator,
		Asked: api.Asked{On: t.On, Proven: t.Proven, Reason: t.Reason, Ran: t.Ran}}
}

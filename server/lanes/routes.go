package lanes

import (
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/lane"
	"muster/server/web"
)

// The states of a task in a lane.
const (
	stateSubmitting = "submitting"
	stateWaiting    = "waiting"
	stateRunning    = "running"
	stateFailed     = "failed"
	stateChecking   = "checking"
)

type (
	listInput struct {
		Key  string `query:"key" doc:"only this lane"`
		Task string `query:"task" doc:"only the lane in which this task is"`
	}
	listOutput    struct{ Body api.LaneList }
	continueInput struct {
		web.Order
		Task string `path:"task" doc:"the task that failed"`
	}
	continueOutput struct{ Body api.LaneInfo }
)

// Routes shows lanes, and lets them continue.
type Routes struct {
	*Lanes
	Seen func(context.Context, []jobs.TaskInfo) ([]jobs.TaskInfo, error)
}

// Routes registers the routes of the resource.
func (s Routes) Routes(a huma.API) {
	huma.Register(a, web.Get("/v1/lanes", "List lanes, each with its tasks in their order"), s.list)
	huma.Register(a, web.Post("/v1/tasks/{task}/lane/continue",
		"Let the lane of a failed task continue without it"), s.proceed)
}

// list answers GET /v1/lanes.
func (s Routes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	keys, err := s.Kept.LaneKeys(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &listOutput{api.LaneList{Lanes: []api.LaneInfo{}}}
	for _, key := range keys {
		if in.Key != "" && lane.Plain(key) != in.Key {
			continue
		}
		l, err := s.lane(ctx, key)
		if err != nil {
			return nil, web.Problem(err)
		}
		if len(l.Tasks) > 0 && (in.Task == "" || slices.ContainsFunc(l.Tasks,
			func(t api.LaneTask) bool { return string(t.Task) == in.Task })) {
			out.Body.Lanes = append(out.Body.Lanes, l)
		}
	}
	return out, nil
}

// lane describes a lane, as far as the caller sees its tasks.
func (s Routes) lane(ctx context.Context, key string) (api.LaneInfo, error) {
	l := api.LaneInfo{Key: lane.Plain(key), Customer: lane.Customer(key), Tasks: []api.LaneTask{}}
	list, infos, err := s.look(ctx, key)
	if err != nil {
		return l, err
	}
	next := lane.Decide(list, fatesOf(list, infos, s.Now()), s.Now())
	var all []jobs.TaskInfo
	for _, e := range list {
		if t, there := infos[e.Task]; there {
			all = append(all, t)
		}
	}
	if all, err = s.Seen(ctx, all); err != nil {
		return l, err
	}
	seen := func(id jobs.TaskID) bool {
		return slices.ContainsFunc(all, func(t jobs.TaskInfo) bool { return t.Task == id })
	}
	for _, e := range list {
		if !seen(e.Task) || slices.Contains(next.Forget, e.Task) {
			continue
		}
		l.Tasks = append(l.Tasks, api.LaneTask{Task: e.Task, Runbook: e.Runbook, By: e.By,
			Mode: e.Words(), Check: e.Check, Since: jobs.TimeOf(e.Since),
			State: stateOf(e, infos[e.Task].State, next),
			Why:   lane.Why(list, next, e.Task, seen)})
		if slices.Contains(next.Failed, e.Task) && l.Stuck == "" {
			l.Stuck = fmt.Sprintf("task %s failed, and tasks of mode gate wait behind it", e.Task)
		}
	}
	return l, nil
}

// stateOf returns the state of a task in its lane. A task that may begin waits until it is
// committed.
func stateOf(e lane.Entry, is jobs.TaskState, next lane.Next) string {
	switch {
	case slices.Contains(next.Failed, e.Task):
		return stateFailed
	case !e.Put && !e.Begun:
		return stateSubmitting
	case !e.Begun && e.Check != "" && e.Behind == "" && !slices.Contains(next.Drop, e.Task):
		return stateChecking
	case !e.Begun, is == jobs.TaskSubmitting:
		return stateWaiting
	}
	return stateRunning
}

// proceed answers POST /v1/tasks/{task}/lane/continue.
func (s Routes) proceed(ctx context.Context, in *continueInput) (*continueOutput, error) {
	id, err := jobs.ParseTaskID(in.Task)
	g, wrong := in.Giver("let continue")
	wrong = append(wrong, web.Mistakes("path.task", err)...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	done := false
	key, err := s.laneOf(ctx, id)
	if err == nil && key != "" {
		// The failure may be younger than the last look of the duty.
		err = s.Advance(ctx, key)
	}
	if err == nil && key != "" {
		err = s.Kept.ChangeLane(ctx, key, func(list []lane.Entry) ([]lane.Entry, error) {
			failed := func(e lane.Entry) bool { return e.Task == id && e.Failed }
			done = slices.ContainsFunc(list, failed)
			return slices.DeleteFunc(list, failed), nil
		})
	}
	switch {
	case err != nil:
		return nil, web.Problem(err)
	case !done:
		return nil, huma.Error404NotFound(fmt.Sprintf("no lane stands behind task %s; `muster lanes` "+
			"lists those that wait for a person", id))
	}
	web.LogOrder(s.Log, "lane let continue", g, "lane", key, "without", id)
	if err := s.Advance(ctx, key); err != nil {
		s.Log.Warn("a lane continues later", "lane", key, "why", err)
	}
	l, err := s.lane(ctx, key)
	return &continueOutput{l}, web.Problem(err)
}

// laneOf returns the lane in which a task is; empty: none.
func (s Routes) laneOf(ctx context.Context, id jobs.TaskID) (string, error) {
	keys, err := s.Kept.LaneKeys(ctx)
	for _, key := range keys {
		list, err := s.Kept.Lane(ctx, key)
		if err != nil {
			return "", err
		}
		if slices.ContainsFunc(list, func(e lane.Entry) bool { return e.Task == id }) {
			return key, nil
		}
	}
	return "", err
}

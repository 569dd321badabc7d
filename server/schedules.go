package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/scripts"
	"muster/server/web"
	"muster/windows"
)

// ScheduleBook keeps the schedules. queue.ErrStale: somebody was faster.
type ScheduleBook interface {
	Schedules(ctx context.Context) ([]hub.Schedule, error)
	Schedule(ctx context.Context, name string) (hub.Schedule, error)
	ChangeSchedule(ctx context.Context, was hub.Schedule, to jobs.Schedule) error
	ChangeSchedules(ctx context.Context, stamp string, list []hub.ScheduleChange) error
	RemoveSchedule(ctx context.Context, was hub.Schedule) error
}

type (
	applySchedulesInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.ApplySchedules
	}
	appliedOutput   struct{ Body api.AppliedSchedules }
	schedulesOutput struct{ Body api.ScheduleList }
	scheduleOutput  struct{ Body api.ScheduleInfo }
	ticksOutput     struct{ Body api.TickList }

	scheduleName struct {
		Schedule string `path:"schedule"`
	}
	scheduleOrder struct {
		web.Order
		Schedule string `path:"schedule"`
	}
	ticksInput struct {
		Schedule string `path:"schedule"`

		Count int    `query:"count" default:"10" minimum:"1" maximum:"1000"`
		From  string `query:"from" doc:"RFC 3339; now if not given"`
	}
	runScheduleInput struct {
		web.Asked
		Schedule string `path:"schedule"`
		User     string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body     *api.RunSchedule
	}
)

// scheduleRoutes answers questions and orders about schedules.
type scheduleRoutes struct {
	hub     Hub
	submits submitRoutes
	catalog func() *scripts.Catalog
	log     hclog.Logger
	whole   func(context.Context) error // see web.WhileAgreed
}

func (s scheduleRoutes) Routes(api huma.API) {
	const one = "/v1/schedules/{schedule}"
	apply := web.Post("/v1/schedules", "Add and change schedules, or tell what that would do")
	apply.MaxBodyBytes = web.SubmitMax
	huma.Register(api, apply, web.WhileAgreed(s.whole, s.applySchedules))
	huma.Register(api, web.Get("/v1/schedules", "List schedules"), s.schedules)
	huma.Register(api, web.Get(one, "Show a schedule"), s.schedule)
	huma.Register(api, web.Get(one+"/next", "List the ticks ahead"), s.nextTicks)
	run := web.Post(one+"/run", "Submit the task of a schedule now")
	run.DefaultStatus = http.StatusCreated
	huma.Register(api, run, s.runSchedule)
	huma.Register(api, web.Post(one+"/pause", "Pause a schedule"),
		web.WhileAgreed(s.whole, s.pauseSchedule))
	huma.Register(api, web.Post(one+"/resume", "Resume a schedule"),
		web.WhileAgreed(s.whole, s.resumeSchedule))
	huma.Register(api, web.Post(one+"/remove", "Remove a schedule"),
		web.WhileAgreed(s.whole, s.removeSchedule))
}

// surprises are what may be otherwise than whoever wrote a schedule expects.
func surprises(e windows.Entry, now time.Time) []string {
	times, err := e.Schedule()
	if err != nil {
		return nil // an entry that was parsed has no mistake
	}
	return times.Surprises(now)
}

// staleTries is how often a change is tried that others come in between.
const staleTries = 5

// changeSchedule changes a schedule as f says of what there is, if f wants that.
func (s scheduleRoutes) changeSchedule(ctx context.Context, name string,
	f func(was hub.Schedule, found bool) (jobs.Schedule, bool)) error {
	for try := 1; ; try++ {
		was, err := s.hub.Schedules.Schedule(ctx, name)
		found := !errors.Is(err, queue.ErrNotFound)
		if err != nil && found {
			return err
		}
		to, do := f(was, found)
		if !do {
			return nil
		}
		err = s.hub.Schedules.ChangeSchedule(ctx, was, to)
		if !errors.Is(err, queue.ErrStale) || try == staleTries {
			return err
		}
	}
}

// nextTick is the first tick ahead; not set if there is none.
func nextTick(s jobs.Schedule, now time.Time) jobs.Time {
	times, err := s.Entry.Schedule()
	if err != nil || !s.Fires() {
		return jobs.Time{}
	}
	for t := range times.Ticks(now.Add(1)) {
		return jobs.Time{Time: t}
	}
	return jobs.Time{}
}

func (s scheduleRoutes) schedules(ctx context.Context, _ *web.Nothing) (*schedulesOutput, error) {
	list, err := s.hub.Schedules.Schedules(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	_, now, err := s.hub.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &schedulesOutput{api.ScheduleList{Schedules: make([]api.ScheduleInfo, 0, len(list))}}
	for _, one := range list {
		out.Body.Schedules = append(out.Body.Schedules, scheduleInfo(one, now))
	}
	return out, nil
}

func scheduleInfo(q hub.Schedule, now time.Time) api.ScheduleInfo {
	i := api.ScheduleInfo{Schedule: q.Schedule, Ticks: q.Ticks, Next: nextTick(q.Schedule, now)}
	if i.Ticks.Pending == nil {
		i.Ticks.Pending = []jobs.Time{}
	}
	return i
}

// find reads a schedule, and the time.
func (s scheduleRoutes) findSchedule(ctx context.Context, name string) (hub.Schedule, time.Time,
	error) {
	q, err := s.hub.Schedules.Schedule(ctx, name)
	if err != nil {
		return q, time.Time{}, noSchedule(err, name)
	}
	_, now, err := s.hub.Ticks.ScheduleStamp(ctx)
	return q, now, web.Problem(err)
}

func noSchedule(err error, name string) error {
	return web.NotThere(err, "there is no schedule %q; `muster schedules ls` lists them", name)
}

func (s scheduleRoutes) schedule(ctx context.Context, in *scheduleName) (*scheduleOutput, error) {
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{scheduleInfo(q, now)}, nil
}

func (s scheduleRoutes) nextTicks(ctx context.Context, in *ticksInput) (*ticksOutput, error) {
	q, from, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if in.From != "" {
		if from, err = time.Parse(time.RFC3339, in.From); err != nil {
			return nil, web.Refusal([]error{web.Mistake("query.from",
				"%q: want a time as 2026-12-01T02:00:00Z",
				web.Clip(in.From))})
		}
	}
	times, err := q.Entry.Schedule()
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &ticksOutput{api.TickList{Schedule: q.Name, Zone: q.Zone, Ticks: []api.Tick{},
		Jitter: times.Offset(q.Name).Round(time.Second).Seconds(), Stands: stands(q.Schedule)}}
	for t := range times.Ticks(from) {
		if len(out.Body.Ticks) == in.Count {
			break
		}
		out.Body.Ticks = append(out.Body.Ticks, api.Tick{At: jobs.Time{Time: t},
			Local: t.In(times.Zone.Location(t)).Format("2006-01-02 15:04:05 -0700")})
	}
	return out, nil
}

// stands says why a schedule has no ticks at the moment; empty: it has.
func stands(s jobs.Schedule) string {
	switch {
	case s.Paused != "":
		return s.Paused
	case !s.Enabled:
		return "not enabled"
	}
	return ""
}

// runSchedule submits what a schedule would submit at a tick, for who asks.
func (s scheduleRoutes) runSchedule(ctx context.Context, in *runScheduleInput) (*submitOutput,
	error) {
	q, _, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	b := request(q.Entry)
	if in.Body != nil {
		b.ID, b.As = in.Body.ID, in.Body.As
	}
	return s.submits.submit(ctx, &submitInput{Asked: in.Asked, User: in.User, Body: b,
		schedule: q.Name})
}

func (s scheduleRoutes) pauseSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput,
	error) {
	return s.turnSchedule(ctx, in, "paused")
}

func (s scheduleRoutes) resumeSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput,
	error) {
	return s.turnSchedule(ctx, in, "resumed")
}

// turnSchedule pauses a schedule, or ends that. Ticks that pass meanwhile are not
// missed: they are not made up for. A pause that stands already keeps its reason.
func (s scheduleRoutes) turnSchedule(ctx context.Context, in *scheduleOrder, done string) (
	*scheduleOutput, error) {
	g, wrong := in.Giver(done)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	_, now, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	already := false
	pause := done == "paused"
	change := func(was hub.Schedule, found bool) (jobs.Schedule, bool) {
		to := was.Schedule
		already = pause == (was.Paused != "")
		if to.Paused = ""; pause {
			to.Paused = g.Note()
		} else {
			to.Since = jobs.Time{Time: now}
		}
		return to, found && !already
	}
	if err := s.changeSchedule(ctx, in.Schedule, change); err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.log, "schedule "+done, g, "schedule", in.Schedule, "already", already)
	return s.schedule(ctx, &scheduleName{in.Schedule})
}

func (s scheduleRoutes) removeSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput,
	error) {
	g, wrong := in.Giver("removed")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if err := s.hub.Schedules.RemoveSchedule(ctx, q); err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.log, "schedule removed", g, "schedule", in.Schedule)
	return &scheduleOutput{scheduleInfo(q, now)}, nil
}

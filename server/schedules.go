package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
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
		Asked
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
		Order
		Schedule string `path:"schedule"`
	}
	ticksInput struct {
		Schedule string `path:"schedule"`

		Count int    `query:"count" default:"10" minimum:"1" maximum:"1000"`
		From  string `query:"from" doc:"RFC 3339; now if not given"`
	}
	runScheduleInput struct {
		Asked
		Schedule string `path:"schedule"`
		User     string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body     *api.RunSchedule
	}
)

func (s *Server) registerSchedules(api huma.API) {
	const one = "/v1/schedules/{schedule}"
	get := func(path, what string) huma.Operation { return operation(http.MethodGet, path, what) }
	post := func(path, what string) huma.Operation { return operation(http.MethodPost, path, what) }

	apply := post("/v1/schedules", "Add and change schedules, or tell what that would do")
	apply.MaxBodyBytes = submitMax
	huma.Register(api, apply, whileAgreed(s.agreedWhole, s.applySchedules))
	huma.Register(api, get("/v1/schedules", "List schedules"), s.schedules)
	huma.Register(api, get(one, "Show a schedule"), s.schedule)
	huma.Register(api, get(one+"/next", "List the ticks ahead"), s.nextTicks)
	run := post(one+"/run", "Submit the task of a schedule now")
	run.DefaultStatus = http.StatusCreated
	huma.Register(api, run, s.runSchedule)
	huma.Register(api, post(one+"/pause", "Pause a schedule"),
		whileAgreed(s.agreedWhole, s.pauseSchedule))
	huma.Register(api, post(one+"/resume", "Resume a schedule"),
		whileAgreed(s.agreedWhole, s.resumeSchedule))
	huma.Register(api, post(one+"/remove", "Remove a schedule"),
		whileAgreed(s.agreedWhole, s.removeSchedule))
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
func (s *Server) changeSchedule(ctx context.Context, name string,
	f func(was hub.Schedule, found bool) (jobs.Schedule, bool)) error {
	for try := 1; ; try++ {
		was, err := s.queue.Hub.Schedules.Schedule(ctx, name)
		found := !errors.Is(err, queue.ErrNotFound)
		if err != nil && found {
			return err
		}
		to, do := f(was, found)
		if !do {
			return nil
		}
		err = s.queue.Hub.Schedules.ChangeSchedule(ctx, was, to)
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

func (s *Server) schedules(ctx context.Context, _ *nothing) (*schedulesOutput, error) {
	list, err := s.queue.Hub.Schedules.Schedules(ctx)
	if err != nil {
		return nil, problem(err)
	}
	_, now, err := s.queue.Hub.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return nil, problem(err)
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
func (s *Server) findSchedule(ctx context.Context, name string) (hub.Schedule, time.Time, error) {
	q, err := s.queue.Hub.Schedules.Schedule(ctx, name)
	if err != nil {
		return q, time.Time{}, noSchedule(err, name)
	}
	_, now, err := s.queue.Hub.Ticks.ScheduleStamp(ctx)
	return q, now, problem(err)
}

func noSchedule(err error, name string) error {
	return notThere(err, "there is no schedule %q; `muster schedules ls` lists them", name)
}

func (s *Server) schedule(ctx context.Context, in *scheduleName) (*scheduleOutput, error) {
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{scheduleInfo(q, now)}, nil
}

func (s *Server) nextTicks(ctx context.Context, in *ticksInput) (*ticksOutput, error) {
	q, from, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if in.From != "" {
		if from, err = time.Parse(time.RFC3339, in.From); err != nil {
			return nil, refusal([]error{mistake("query.from", "%q: want a time as 2026-12-01T02:00:00Z",
				clip(in.From))})
		}
	}
	times, err := q.Entry.Schedule()
	if err != nil {
		return nil, problem(err)
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
func (s *Server) runSchedule(ctx context.Context, in *runScheduleInput) (*submitOutput, error) {
	q, _, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	b := request(q.Entry)
	if in.Body != nil {
		b.ID, b.As = in.Body.ID, in.Body.As
	}
	return s.submit(ctx, &submitInput{Asked: in.Asked, User: in.User, Body: b, schedule: q.Name})
}

func (s *Server) pauseSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput, error) {
	return s.turnSchedule(ctx, in, "paused")
}

func (s *Server) resumeSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput, error) {
	return s.turnSchedule(ctx, in, "resumed")
}

// turnSchedule pauses a schedule, or ends that. Ticks that pass meanwhile are not
// missed: they are not made up for. A pause that stands already keeps its reason.
func (s *Server) turnSchedule(ctx context.Context, in *scheduleOrder, done string) (
	*scheduleOutput, error) {
	g, wrong := in.giver(done)
	if len(wrong) > 0 {
		return nil, refusal(wrong)
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
			to.Paused = g.note()
		} else {
			to.Since = jobs.Time{Time: now}
		}
		return to, found && !already
	}
	if err := s.changeSchedule(ctx, in.Schedule, change); err != nil {
		return nil, problem(err)
	}
	logOrder(s.log, "schedule "+done, g, "schedule", in.Schedule, "already", already)
	return s.schedule(ctx, &scheduleName{in.Schedule})
}

func (s *Server) removeSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput, error) {
	g, wrong := in.giver("removed")
	if len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	if err := s.queue.Hub.Schedules.RemoveSchedule(ctx, q); err != nil {
		return nil, problem(err)
	}
	logOrder(s.log, "schedule removed", g, "schedule", in.Schedule)
	return &scheduleOutput{scheduleInfo(q, now)}, nil
}

// dutyList is who has which duty. It is a hint for people, so that it cannot be
// read is not worth a refusal.
func (s *Server) dutyList(ctx context.Context) []jobs.Duty {
	list, err := s.queue.Hub.Duties.Leaders(ctx)
	if err != nil {
		s.log.Debug("duties cannot be listed", "error", err)
	}
	return slices.Concat([]jobs.Duty{}, list)
}

package schedules

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/scripts"
	"muster/server/fault"
	"muster/server/web"
	"muster/windows"
)

// Book keeps the schedules. Its errors wrap queue.ErrStale if somebody else was faster.
type Book interface {
	Schedules(ctx context.Context) ([]hub.Schedule, error)
	Schedule(ctx context.Context, name string) (hub.Schedule, error)
	ChangeSchedule(ctx context.Context, was hub.Schedule, to jobs.Schedule) error
	ChangeSchedules(ctx context.Context, stamp string, list []hub.ScheduleChange) error
	RemoveSchedule(ctx context.Context, was hub.Schedule) error
	PrepareSchedules(stamp string, list []hub.ScheduleChange) (hub.Prepared, error)
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
	turnedOutput    struct{ Body api.TurnedSchedule }
	ticksOutput     struct{ Body api.TickList }
	runOutput       struct {
		Status int
		Body   api.Submitted
	}

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

// Stamps returns the stamp of the schedules as a whole, and the time of Redis.
type Stamps interface {
	ScheduleStamp(ctx context.Context) (stamp string, now time.Time, err error)
}

// Resource answers questions and orders about schedules.
type Resource struct {
	Book    Book
	Ticks   Stamps
	Catalog func() *scripts.Catalog
	Log     hclog.Logger
	Whole   func(context.Context) error // see web.WhileAgreed
	Owned   Owned                       // nil: no schedule comes from elsewhere

	// Submit submits a task at the word of a caller; the name of a schedule goes with it.
	Submit func(ctx context.Context, who web.Asked, user string, b api.Submit, schedule string) (
		status int, t api.Submitted, err error)

	// HostsOn returns the hosts that a selector picks now in the whole house.
	HostsOn func(ctx context.Context, selector string) ([]string, error)

	// Refusals returns the reasons why each of some tasks would be refused.
	Refusals func(ctx context.Context, list []api.Submit, by web.Giver) ([][]error, error)
}

// Routes registers the routes of schedules.
func (s Resource) Routes(api huma.API) {
	const one = "/v1/schedules/{schedule}"
	apply := web.Post("/v1/schedules", "Add and change schedules, or tell what that would do")
	apply.MaxBodyBytes = web.SubmitMax
	huma.Register(api, apply, web.WhileAgreed(s.Whole, s.applySchedules))
	huma.Register(api, web.Get("/v1/schedules", "List schedules"), s.schedules)
	huma.Register(api, web.Get(one, "Show a schedule"), s.schedule)
	huma.Register(api, web.Get(one+"/next", "List the ticks ahead"), s.nextTicks)
	run := web.Post(one+"/run", "Submit the task of a schedule now")
	run.DefaultStatus = http.StatusCreated
	huma.Register(api, run, s.runSchedule)
	huma.Register(api, web.Post(one+"/pause", "Pause a schedule"),
		web.WhileAgreed(s.Whole, s.pauseSchedule))
	huma.Register(api, web.Post(one+"/resume", "Resume a schedule"),
		web.WhileAgreed(s.Whole, s.resumeSchedule))
	huma.Register(api, web.Post(one+"/remove", "Remove a schedule"),
		web.WhileAgreed(s.Whole, s.removeSchedule))
}

// surprises returns the properties of a schedule that its author may not expect.
func surprises(e windows.Entry, now time.Time) []string {
	times, err := e.Schedule()
	if err != nil {
		return nil // an entry that was parsed has no mistake
	}
	return times.Surprises(now)
}

// staleTries bounds the tries at a change that others overtake.
const staleTries = 5

// doubt refuses to work with a schedule that no server wrote: a change would vouch for the rest.
func doubt(s hub.Schedule) error {
	if s.Doubt() == nil {
		return nil
	}
	return fault.Contradict(fmt.Sprintf("what Redis has of schedule %s is not believed: %v; look at "+
		"it, and apply the schedule anew, or remove it", s.Name, s.Doubt()))
}

// changeSchedule replaces a schedule by the one that f makes of it, if f wants a change.
func (s Resource) changeSchedule(ctx context.Context, name string,
	f func(was hub.Schedule, found bool) (jobs.Schedule, bool)) error {
	for try := 1; ; try++ {
		was, err := s.Book.Schedule(ctx, name)
		found := !errors.Is(err, queue.ErrNotFound)
		if err != nil && found {
			return err
		}
		to, do := f(was, found)
		if !do {
			return nil
		}
		if err := doubt(was); err != nil {
			return err
		}
		err = s.Book.ChangeSchedule(ctx, was, to)
		if !errors.Is(err, queue.ErrStale) || try == staleTries {
			return err
		}
	}
}

// nextTick returns the first tick ahead; not set if there is none.
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

func (s Resource) schedules(ctx context.Context, _ *web.Nothing) (*schedulesOutput, error) {
	list, err := s.Book.Schedules(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	_, now, err := s.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &schedulesOutput{api.ScheduleList{Schedules: make([]api.ScheduleInfo, 0, len(list))}}
	for _, one := range list {
		seen, err := s.may(ctx, one, access.See)
		if err != nil {
			return nil, web.Problem(err)
		}
		if seen {
			out.Body.Schedules = append(out.Body.Schedules, scheduleInfo(one, now))
		}
	}
	return out, nil
}

func scheduleInfo(q hub.Schedule, now time.Time) api.ScheduleInfo {
	i := api.ScheduleInfo{Schedule: q.Schedule, Ticks: q.Ticks, Next: nextTick(q.Schedule, now)}
	if i.Ticks.Pending == nil {
		i.Ticks.Pending = []jobs.Time{}
	}
	if d := q.Doubt(); d != nil { // it makes no tasks until it is applied anew
		i.Paused = "what Redis has of it is not believed: " + d.Error()
	}
	return i
}

// findSchedule reads a schedule, and the time of Redis.
func (s Resource) findSchedule(ctx context.Context, name string) (hub.Schedule, time.Time,
	error) {
	q, err := s.Book.Schedule(ctx, name)
	if err == nil {
		err = s.there(ctx, q)
	}
	if err != nil {
		return q, time.Time{}, noSchedule(err, name)
	}
	_, now, err := s.Ticks.ScheduleStamp(ctx)
	return q, now, web.Problem(err)
}

func noSchedule(err error, name string) error {
	return web.NotThere(err, "there is no schedule %q; `muster schedules ls` lists them", name)
}

func (s Resource) schedule(ctx context.Context, in *scheduleName) (*scheduleOutput, error) {
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err != nil {
		return nil, err
	}
	return &scheduleOutput{scheduleInfo(q, now)}, nil
}

func (s Resource) nextTicks(ctx context.Context, in *ticksInput) (*ticksOutput, error) {
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

// stands returns the reason why a schedule has no ticks at the moment; empty if it has.
func stands(s jobs.Schedule) string {
	switch {
	case s.Paused != "":
		return s.Paused
	case !s.Enabled:
		return "not enabled"
	}
	return ""
}

// runSchedule submits the task of a schedule at the word of the caller.
func (s Resource) runSchedule(ctx context.Context, in *runScheduleInput) (*runOutput,
	error) {
	q, _, err := s.findSchedule(ctx, in.Schedule)
	if err == nil {
		err = s.refuse(ctx, q, access.Run)
	}
	if err == nil {
		err = web.Problem(doubt(q))
	}
	if err != nil {
		return nil, err
	}
	b := Request(q.Entry)
	if in.Body != nil {
		b.ID, b.As = in.Body.ID, in.Body.As
	}
	status, t, err := s.Submit(ctx, in.Asked, in.User, b, q.Name)
	if err != nil {
		return nil, err
	}
	return &runOutput{status, t}, nil
}

func (s Resource) pauseSchedule(ctx context.Context, in *scheduleOrder) (*turnedOutput,
	error) {
	return s.turnSchedule(ctx, in, "paused")
}

func (s Resource) resumeSchedule(ctx context.Context, in *scheduleOrder) (*turnedOutput,
	error) {
	return s.turnSchedule(ctx, in, "resumed")
}

// turnSchedule pauses or resumes a schedule. The ticks of a pause are not missed: nothing makes up
// for them. A second pause does not replace the reason of the first.
func (s Resource) turnSchedule(ctx context.Context, in *scheduleOrder, done string) (
	*turnedOutput, error) {
	g, wrong := in.Giver(done)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err == nil {
		err = s.refuse(ctx, q, access.Order)
	}
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
	web.LogOrder(s.Log, "schedule "+done, g, "schedule", in.Schedule, "already", already)
	if q, now, err = s.findSchedule(ctx, in.Schedule); err != nil {
		return nil, err
	}
	return &turnedOutput{api.TurnedSchedule{Name: q.Name, Paused: q.Paused, Enabled: q.Enabled,
		Next: nextTick(q.Schedule, now), Already: already}}, nil
}

func (s Resource) removeSchedule(ctx context.Context, in *scheduleOrder) (*scheduleOutput,
	error) {
	g, wrong := in.Giver("removed")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	q, now, err := s.findSchedule(ctx, in.Schedule)
	if err == nil {
		err = s.refuse(ctx, q, access.Order)
	}
	if err != nil {
		return nil, err
	}
	if err := s.Owned.refuse(ctx, q.Name); err != nil {
		return nil, err
	}
	if err := s.Book.RemoveSchedule(ctx, q); err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.Log, "schedule removed", g, "schedule", in.Schedule)
	return &scheduleOutput{scheduleInfo(q, now)}, nil
}

package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/api"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/server/draft"
	"muster/server/election"
	"muster/server/fault"
	"muster/windows"
)

// Ticks are how a leader keeps account of what it fires.
type Ticks interface {
	ScheduleStamp(ctx context.Context) (string, time.Time, error)
	Tick(ctx context.Context, term int64, was hub.Schedule, to jobs.Ticking) (hub.Schedule, error)
	Abandon(ctx context.Context, id jobs.TaskID, of jobs.Terms, note string) (bool, error)
}

const (
	// fireEvery is how often the leader looks whether an operator has changed
	// something, and how late a tick is that an operator has just made.
	fireEvery = time.Second
	// fireLeast keeps a round from following the other at once.
	fireLeast = 5 * time.Millisecond
	// never is when a schedule is due that has no tick ahead.
	never = 100 * 365 * 24 * time.Hour
)

// resultMax bounds why a tick has no task, in bytes.
const resultMax = 500

// firing is the account of one leader. What it knows of the schedules is a copy: it
// alone writes ticks, and a stamp tells when an operator changed something.
type firing struct {
	*Server
	term    firingTerm
	stamp   string
	all     []*planned
	pending []*planned // with ticks that are to become tasks
}

// firingTerm is the term of a leader, as far as it fires schedules.
type firingTerm interface {
	Number() int64
	Trusted() bool
}

// planned is a schedule with its times.
type planned struct {
	hub.Schedule
	times windows.Schedule
	due   time.Time // when there is something to decide
}

// fire fires the schedules until ctx is done or somebody else does.
func (s *Server) fire(ctx context.Context, t *election.Term) error {
	f := &firing{Server: s, term: t}
	said := ""
	for {
		wait, err := f.round(ctx)
		trouble := ""
		if err != nil {
			trouble = err.Error()
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, queue.ErrDeposed):
			return err
		case trouble != "" && trouble != said:
			s.log.Warn("schedules", "trouble", trouble)
		case trouble == "" && said != "":
			s.log.Info("schedules", "trouble", "over")
		}
		said = trouble
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}

// round does what is due, and says when to come again. Ticks that an earlier
// leader left pending come with the rest. First all that is due is decided, which
// is quick, then tasks are made of it, of one schedule in any case and of the others
// for a second at the most: so no tick is decided upon so late that it counts as missed.
func (f *firing) round(ctx context.Context) (time.Duration, error) {
	stamp, now, err := f.queue.Hub.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return fireEvery, err
	}
	begun := f.now()
	if f.all == nil || stamp != f.stamp {
		if err := f.reload(ctx, now); err != nil {
			return fireEvery, err
		}
		f.stamp = stamp
	}
	first, err := f.decide(ctx, now)
	wait := min(first.Sub(now), fireEvery)
	again := f.pending[:0]
	for i, p := range f.pending {
		if i > 0 && f.now().Sub(begun) > fireEvery || errors.Is(err, queue.ErrDeposed) {
			again, wait = append(again, p), 0
			continue
		}
		if e := f.makeTasks(ctx, p, now); e != nil {
			again, err = append(again, p), errors.Join(err, e)
		} else if !p.due.After(now) {
			wait = 0 // it was pending before: what came due since was not looked at
		}
	}
	f.pending = again
	if f.forgetStale(err) {
		err, wait = nil, 0
	}
	return max(wait-f.now().Sub(begun), fireLeast), err
}

// forgetStale drops the copy if somebody has changed what it is a copy of, and
// tells whether that is all that went wrong.
func (f *firing) forgetStale(err error) bool {
	if !errors.Is(err, queue.ErrStale) && !errors.Is(err, queue.ErrNotFound) {
		return false
	}
	f.all, f.pending = nil, nil
	return !errors.Is(err, queue.ErrDeposed)
}

// reload reads all schedules. One whose ticks Redis has forgotten begins now.
func (f *firing) reload(ctx context.Context, now time.Time) error {
	list, err := f.queue.Hub.Schedules.Schedules(ctx)
	if err != nil {
		return err
	}
	f.all, f.pending = make([]*planned, 0, len(list)), nil
	for _, one := range list {
		times, err := one.Entry.Schedule()
		if err != nil {
			f.log.Error("schedule cannot be read, so it has no ticks", "schedule", one.Name, "error", err)
			continue
		}
		p := &planned{Schedule: one, times: times}
		if one.Forgotten() {
			f.log.Warn("schedule: Redis has forgotten its last tick; it goes on from now",
				"schedule", one.Name)
			p.Ticks.Last = jobs.Time{Time: now}
		}
		if len(p.Ticks.Pending) > 0 {
			f.pending = append(f.pending, p)
		}
		f.all = append(f.all, p)
	}
	return nil
}

// decide writes down which ticks are to be fired, with the next one ahead, before
// any of them becomes a task. It returns when there is something to decide again.
func (f *firing) decide(ctx context.Context, now time.Time) (first time.Time, err error) {
	first = now.Add(never)
	for _, p := range f.all {
		if !p.due.After(now) && (len(p.Ticks.Pending) == 0 || !p.Fires()) {
			if e := f.decideOne(ctx, p, now); e != nil {
				err = errors.Join(err, e)
				continue
			}
		}
		if p.due.Before(first) && p.due.After(now) {
			first = p.due
		}
	}
	return first, err
}

func (f *firing) decideOne(ctx context.Context, p *planned, now time.Time) error {
	before := len(p.Ticks.Pending)
	to, changed := p.Ticks.Advance(p.Schedule.Schedule, p.times, now)
	if changed || p.Forgotten() {
		next, err := f.queue.Hub.Ticks.Tick(ctx, f.term.Number(), p.Schedule, to)
		if err != nil {
			return err
		}
		p.Schedule = next
		if to.Skipped > 0 {
			f.log.Warn("schedule: ticks were missed and are not made up for", "schedule", p.Name,
				"ticks", to.Skipped, "missed", p.Missed)
		}
	}
	if before == 0 && len(to.Pending) > 0 {
		f.pending = append(f.pending, p)
	}
	p.due = to.Next.Time
	if p.due.IsZero() {
		p.due = now.Add(never)
	}
	return nil
}

// makeTasks makes tasks of the pending ticks of a schedule, and takes each off.
func (f *firing) makeTasks(ctx context.Context, p *planned, now time.Time) error {
	for len(p.Ticks.Pending) > 0 {
		fired, err := f.makeTask(ctx, p, p.Ticks.Pending[0].Time, now)
		if err != nil {
			return fmt.Errorf("schedule %s: tick %s: %w", p.Name, p.Ticks.Pending[0], err)
		}
		next, err := f.queue.Hub.Ticks.Tick(ctx, f.term.Number(), p.Schedule, p.Ticks.Done(fired))
		if err != nil {
			return err
		}
		p.Schedule = next
		if fired.Refused {
			f.log.Warn("schedule: a tick has no task", "schedule", p.Name, "tick", fired.Tick,
				"why", fired.Result)
			continue
		}
		f.log.Info("schedule fired", "schedule", p.Name, "tick", fired.Tick, "task", fired.Task,
			"runbook", p.Entry.Runbook, "on", clip(p.Entry.On), "operator", p.By, "proven", p.Proven)
	}
	return nil
}

const submitted = "submitted"

// makeTask makes the task of a tick, unless it is there. An error means that the
// tick is still to be dealt with.
func (f *firing) makeTask(ctx context.Context, p *planned, tick, now time.Time) (jobs.Fired,
	error) {
	fired := jobs.Fired{Tick: jobs.Time{Time: tick}, Task: p.Ticks.Task, Refused: true}
	terms := jobs.Terms{Schedule: p.Name, Tick: fired.Tick}
	for salt := range jobs.TickTries {
		id := jobs.TickID(p.Name, tick, salt)
		is, err := f.find(ctx, id, terms)
		switch {
		case err != nil:
			return fired, err
		case is == idDone:
			return jobs.Fired{Tick: fired.Tick, Task: id, Result: submitted}, nil
		case is == idTaken:
			continue
		}
		if why, err := f.overlaps(ctx, p, tick); err != nil || why != "" {
			fired.Result = why
			return fired, err
		}
		plan, wrong, err := f.planTick(ctx, p, tick, now)
		if err != nil {
			return fired, err
		}
		if len(wrong) > 0 {
			fired.Result = wording.ClipTo(words(wrong), resultMax)
			return fired, nil
		}
		plan.Task.ID = id
		switch err = f.put1(ctx, plan); {
		case err == nil:
			return jobs.Fired{Tick: fired.Tick, Task: id, Result: submitted}, nil
		case errors.Is(err, jobs.ErrNoBlob):
			fired.Result = wording.ClipTo(err.Error(), resultMax)
			return fired, nil
		case errors.Is(err, queue.ErrCancelled):
			continue // it was given up before anybody could list it
		case !errors.Is(err, queue.ErrConflict):
			return fired, err
		}
		if done, err := f.conflict(ctx, id, terms); err != nil || done {
			return jobs.Fired{Tick: fired.Tick, Task: id, Result: submitted}, err
		}
	}
	fired.Result = "other tasks have all the ids that this tick could have"
	return fired, nil
}

// put1 submits a task, if the duty is ours still.
func (f *firing) put1(ctx context.Context, p draft.Draft) error {
	if !f.term.Trusted() {
		return queue.ErrDeposed
	}
	if err := f.mayBegin(ctx); err != nil {
		return err
	}
	if err := f.queue.Blobs.Store.PinBlobs(ctx, p.Task.ID, p.Blobs); err != nil {
		return err
	}
	return f.queue.Submit.Submits.Submit(ctx, p.Task, p.Hosts, nil)
}

// use is what is known of an id that a tick could have.
type use int

const (
	idFree  use = iota // or the tick's own, submitted in part
	idTaken            // another task's, or given up
	idDone             // the tick's own task
)

func (f *firing) find(ctx context.Context, id jobs.TaskID, of jobs.Terms) (use, error) {
	t, err := f.queue.Read.Tasks.Task(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return f.findPast(ctx, id, of), nil
	case err != nil:
		return idFree, err
	case t.Schedule != of.Schedule || !t.Tick.Equal(of.Tick.Time):
		return idTaken, nil
	case t.CancelledInSubmit:
		return idTaken, nil
	case t.State != jobs.TaskSubmitting:
		return idDone, nil
	case t.Cancelled != "":
		return idTaken, nil
	}
	return idFree, nil
}

// lateTick is from when on a tick is one that may have had its task already, in a Redis that has
// forgotten it since.
const lateTick = 5 * time.Second

// findPast is find for a task that Redis does not know. A history that is away stops nobody.
func (f *firing) findPast(ctx context.Context, id jobs.TaskID, of jobs.Terms) use {
	if f.history == nil || f.now().Sub(of.Tick.Time) < lateTick {
		return idFree
	}
	t, err := f.history.Task(ctx, id)
	switch {
	case err != nil:
		return idFree
	case t.Schedule == of.Schedule && t.Tick.Equal(of.Tick.Time):
		return idDone
	}
	return idTaken
}

// conflict is about an id under which something else was submitted. If that is
// this tick as an earlier leader saw it, with other hosts, and it got half way, then
// it is given up, so that its leader cannot complete it any more; the tick goes on
// under another id. It tells whether the tick has its task after all.
func (f *firing) conflict(ctx context.Context, id jobs.TaskID, of jobs.Terms) (done bool,
	err error) {
	t, err := f.queue.Hub.Duties.Lead(ctx, hub.DutySchedules, f.who(), f.term.Number())
	if err != nil {
		return false, err
	}
	if !t.Mine || t.Number != f.term.Number() {
		return false, queue.ErrDeposed
	}
	const why = "submitted in part by a server that is gone"
	if _, err := f.queue.Hub.Ticks.Abandon(ctx, id, of, why); err != nil {
		return false, err
	}
	is, err := f.find(ctx, id, of)
	return is == idDone, err
}

// overlaps says why a tick has to be left out; empty: it has not.
func (f *firing) overlaps(ctx context.Context, p *planned, tick time.Time) (string, error) {
	if p.Overlap != windows.OverlapForbid || p.Ticks.Task == "" {
		return "", nil
	}
	t, err := f.queue.Read.Tasks.Task(ctx, p.Ticks.Task)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	case t.State == jobs.TaskEnded || t.Tick.Equal(tick):
		return "", nil
	}
	return fmt.Sprintf("overlap: forbid, and task %s of %s is %s", t.Task, t.Tick, t.State), nil
}

// planTick resolves a schedule with the inventory and the runbooks of this moment.
func (f *firing) planTick(ctx context.Context, p *planned, tick, now time.Time) (
	draft.Draft, []error, error) {
	b := request(p.Entry)
	plan, wrong, err := f.resolve(ctx, b, p.By, p.Proven)
	plan.Task.Spec.Schedule, plan.Task.Spec.Tick = p.Name, jobs.Time{Time: tick}
	if err != nil || len(wrong) > 0 {
		return plan, wrong, err
	}
	var offset func(host string) time.Duration
	if p.times.Jitter > 0 {
		offset = p.times.Offset
	}
	wrong, err = f.appoint(ctx, &plan, b.Timed, offset)
	return plan, wrong, err
}

// resolve is what a request comes to now, or all that is wrong with it. Its error is
// about Redis.
func (s *Server) resolve(ctx context.Context, b api.Submit, operator string, proven bool) (
	draft.Draft, []error, error) {
	catalog := s.catalog.Load()
	b, stored, err := s.store(ctx, b, catalog, operator)
	if err != nil {
		return draft.Draft{}, nil, err
	}
	v, err := s.look.Scene(ctx, b.On)
	if err != nil {
		return draft.Draft{}, nil, err
	}
	p, wrong := draft.New(b, draft.Setting{Catalog: catalog, Scene: v, Operator: operator,
		Proven: proven, Now: s.now(), Stored: stored})
	return p, wrong, nil
}

// request is what a schedule asks for, as a person would.
func request(e windows.Entry) api.Submit {
	return api.Submit{Runbook: e.Runbook, On: e.On, Args: e.Args, Expire: e.Expire,
		Priority: e.Priority,
		Manner:   api.Manner{Disruptive: e.Disruptive, Only: e.Only}, Supersedes: e.Supersedes,
		Rollout: jobs.AskOf(e.Rollout),
		// What has no opening at a tick may have one at the next. A rule counts all hosts that
		// are selected, so it can leave none out: such a tick has no task, and says for whom.
		Timed: api.Timed{Window: e.Window == windows.WindowRequired, Expect: e.Expect,
			SkipClosed: e.Rollout == nil}}
}

// words are mistakes in one line.
func words(wrong []error) string {
	var list []string
	for _, err := range wrong {
		var d *fault.Mistake
		if errors.As(err, &d) {
			list = append(list, strings.TrimPrefix(d.Location, "body.")+": "+d.Message)
			continue
		}
		list = append(list, err.Error())
	}
	return strings.ReplaceAll(strings.Join(list, "; "), "\n", "; ")
}

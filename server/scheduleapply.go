package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster/api"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/hub"
	"muster/server/duties"
	"muster/server/intake"
	"muster/server/web"
	"muster/windows"
)

// schedulesMax bounds the schedules of one owner: who leads reads all of them whenever one is
// changed.
const schedulesMax = 2000

// applySchedules adds what is new and changes what differs. Schedules that the files do not name
// stay, unless they are pruned. All of it is done, or nothing.
func (s scheduleRoutes) applySchedules(ctx context.Context,
	in *applySchedulesInput) (*appliedOutput,
	error) {
	g, wrong := web.GiverOf(in.Body.OrderRequest, "applied", in.Caller(), in.User)
	entries, err := windows.ParseSchedules(in.Body.Files, jobs.CheckRollout)
	wrong = append(wrong, web.Mistakes("body.files", err)...)
	if len(wrong) == 0 && len(entries) == 0 && !in.Body.All && len(in.Body.Customers) == 0 {
		wrong = append(wrong, web.Mistake("body.files", "no schedule is in there"))
	}
	for _, e := range entries {
		wrong = append(wrong, openly(s.catalog(), e.Name, e.Runbook)...)
	}
	for try := 1; ; try++ {
		p := applying{ApplySchedules: in.Body, giver: g}
		if err := p.plan(ctx, s.hub, entries, wrong); err != nil {
			return nil, err
		}
		if err := s.refuseTicks(ctx, &p, entries); err != nil {
			return nil, web.Problem(err)
		}
		if in.Body.Check {
			return &appliedOutput{p.out}, nil
		}
		err := s.hub.Schedules.ChangeSchedules(ctx, p.stamp, p.changes)
		if errors.Is(err, queue.ErrStale) && try < staleTries {
			continue // whoever expects what was there before is refused now
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		for _, one := range p.out.Schedules {
			if one.Change != api.Unchanged {
				web.LogOrder(s.log, "schedule "+string(one.Change), g, "schedule", one.Name)
			}
		}
		return &appliedOutput{p.out}, nil
	}
}

// applying is what an apply comes to, by the schedules that are there.
type applying struct {
	api.ApplySchedules
	giver   web.Giver
	stamp   string // of the schedules that it was worked out from
	changes []hub.ScheduleChange
	out     api.AppliedSchedules
}

// plan works it out, or tells what is wrong.
func (p *applying) plan(ctx context.Context, q Hub, entries []windows.Entry,
	wrong []error) error {
	// The stamp first: what is changed behind it makes what is read here stale.
	stamp, now, err := q.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return web.Problem(err)
	}
	there, err := q.Schedules.Schedules(ctx)
	if err != nil {
		return web.Problem(err)
	}
	sorted := sortOut(there, entries, p.Pruning)
	wrong = append(append(wrong[:len(wrong):len(wrong)], sorted.wrong...), sorted.tooMany(entries)...)
	if len(wrong) > 0 {
		return web.Refusal(wrong)
	}
	if err := web.Meets(api.Expected{Basis: p.Basis}, "schedules", sorted.basis, 0); err != nil {
		return err
	}
	p.stamp = stamp
	p.out = api.AppliedSchedules{Check: p.Check, Left: sorted.left, Basis: sorted.basis,
		Schedules: []api.AppliedSchedule{}}
	was := make(map[string]hub.Schedule, len(there))
	for _, one := range there {
		was[one.Name] = one
	}
	for _, e := range entries {
		old, found := was[e.Name]
		p.entry(e, old, found, now)
	}
	for _, one := range sorted.remove {
		p.changes = append(p.changes, hub.ScheduleChange{Was: one})
		p.out.Schedules = append(p.out.Schedules, api.AppliedSchedule{Name: one.Name,
			Change:      api.Removed,
			Differences: []string{}})
	}
	return nil
}

// entry makes one schedule as it should be.
func (p *applying) entry(e windows.Entry, was hub.Schedule, found bool, now time.Time) {
	one := api.AppliedSchedule{Name: e.Name, Change: api.Changed,
		Differences: e.Differences(was.Entry)}
	to := was.Schedule
	to.Entry, to.By, to.Proven, to.At = e, p.giver.Name, p.giver.Proven, jobs.Time{Time: now}
	to.Version++
	switch {
	case !found:
		one.Change, one.Differences = api.Added, []string{}
	case len(one.Differences) == 0:
		one.Change, one.Differences = api.Unchanged, []string{}
		to = was.Schedule
	}
	if !found || !e.SameTimes(was.Entry) {
		to.Since = jobs.Time{Time: now} // what the old times have missed is nobody's business
		one.Notes = surprises(e, now)
	}
	one.Next = nextTick(to, now)
	if one.Change != api.Unchanged {
		p.changes = append(p.changes, hub.ScheduleChange{Was: was, To: &to})
	}
	p.out.Schedules = append(p.out.Schedules, one)
}

// refuseTicks says of each schedule why a tick at this moment would have no task.
func (s scheduleRoutes) refuseTicks(ctx context.Context, p *applying,
	entries []windows.Entry) error {
	for i, e := range entries {
		_, wrong, err := s.submits.intake.submits.Tick(ctx, intake.Ask{Body: request(e),
			Operator: p.giver.Name,
			Proven:   p.giver.Proven}, nil)
		if err != nil {
			return err
		}
		p.out.Schedules[i].Refused = wording.ClipTo(words(wrong), duties.ResultMax)
	}
	return nil
}

// tooMany refuses more schedules of one owner than there may be: those of the files and those
// that stay.
func (s sorting) tooMany(entries []windows.Entry) []error {
	count := map[string]int{}
	for _, e := range entries {
		count[e.Owner]++
	}
	var wrong []error
	for owner, n := range count {
		if n += s.stay[owner]; n > schedulesMax {
			wrong = append(wrong, web.Mistake("body.files",
				"%s would have %d schedules, %d of them in force "+
					"already and not in the files: at most %d; a schedule can be for many hosts, see `on`",
				ownerOf(owner), n, s.stay[owner], schedulesMax))
		}
	}
	return wrong
}

func ownerOf(name string) string {
	if name == "" {
		return "no owner"
	}
	return fmt.Sprintf("owner %s", name)
}

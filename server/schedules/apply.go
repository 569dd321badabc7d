package schedules

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
	"muster/server/fault"
	"muster/server/web"
	"muster/windows"
)

// schedulesMax bounds the schedules of one owner: the server with the duty reads all of them after
// each change.
const schedulesMax = 2000

// applySchedules adds the new schedules of the files and changes those that differ. Schedules that
// the files do not name stay, unless the request prunes them. It does all of it, or nothing.
func (s Resource) applySchedules(ctx context.Context,
	in *applySchedulesInput) (*appliedOutput,
	error) {
	g, wrong := web.GiverOf(in.Body.OrderRequest, "applied", in.Caller(), in.User)
	entries, err := windows.ParseSchedules(in.Body.Files, jobs.CheckRollout)
	wrong = append(wrong, web.Mistakes("body.files", err)...)
	if len(wrong) == 0 && len(entries) == 0 && !in.Body.All && len(in.Body.Customers) == 0 {
		wrong = append(wrong, web.Mistake("body.files", "no schedule is in there"))
	}
	for _, e := range entries {
		wrong = append(wrong, openly(s.Catalog(), e)...)
	}
	for try := 1; ; try++ {
		p := applying{ApplySchedules: in.Body, giver: g}
		if err := p.plan(ctx, s, entries, wrong); err != nil {
			return nil, err
		}
		if err := s.keep(ctx, p.out.Schedules); err != nil {
			return nil, err
		}
		if err := s.refuseTicks(ctx, &p, entries); err != nil {
			return nil, web.Problem(err)
		}
		if in.Body.Check {
			return &appliedOutput{p.out}, nil
		}
		err := s.Book.ChangeSchedules(ctx, p.stamp, p.changes)
		if errors.Is(err, queue.ErrStale) && try < staleTries {
			continue // whoever expects what was there before is refused now
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		for _, one := range p.out.Schedules {
			if one.Change != api.Unchanged {
				web.LogOrder(s.Log, "schedule "+string(one.Change), g, "schedule", one.Name)
			}
		}
		return &appliedOutput{p.out}, nil
	}
}

// applying has the changes of an apply, worked out from the schedules in force.
type applying struct {
	api.ApplySchedules
	giver   web.Giver
	stamp   string // of the schedules that it was worked out from
	changes []hub.ScheduleChange
	out     api.AppliedSchedules
}

// plan works out the changes, or returns all mistakes.
func (p *applying) plan(ctx context.Context, s Resource, entries []windows.Entry,
	wrong []error) error {
	// The stamp comes first: a change after it makes the reading below stale.
	stamp, now, err := s.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return web.Problem(err)
	}
	there, err := s.Book.Schedules(ctx)
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
		doubt := old.Doubt()
		if doubt != nil {
			old.Schedule = jobs.Schedule{Entry: windows.Entry{Name: e.Name}, Version: old.Version}
		}
		p.entry(e, old, found, now)
		if found && doubt != nil { // nobody knows what it was, so there is nothing to compare
			p.out.Schedules[len(p.out.Schedules)-1].Differences = []string{"all of it is written anew, " +
				"because what Redis has of it is not believed: " + doubt.Error()}
		}
	}
	for _, one := range sorted.remove {
		p.changes = append(p.changes, hub.ScheduleChange{Was: one})
		p.out.Schedules = append(p.out.Schedules, api.AppliedSchedule{Name: one.Name,
			Change:      api.Removed,
			Differences: []string{}})
	}
	return nil
}

// entry works out the change of one schedule.
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

// refuseTicks adds to each schedule the reason why a tick at this moment would have no task.
func (s Resource) refuseTicks(ctx context.Context, p *applying,
	entries []windows.Entry) error {
	why, err := s.refusals(ctx, entries, p.giver)
	for i, text := range why {
		p.out.Schedules[i].Refused = text
	}
	return err
}

// refusals returns the reason why a tick of each schedule would have no task at this moment; empty:
// it would have one.
func (s Resource) refusals(ctx context.Context, entries []windows.Entry, g web.Giver) ([]string,
	error) {
	var list []api.Submit
	for _, e := range entries {
		list = append(list, Request(e))
	}
	why, err := s.Refusals(ctx, list, g)
	var out []string
	for _, wrong := range why {
		out = append(out, wording.ClipTo(fault.Words(wrong), duties.ResultMax))
	}
	return out, err
}

// tooMany returns a mistake for each owner who would have too many schedules: those of the files
// and those that stay.
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

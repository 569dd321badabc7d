package schedules

import (
	"context"
	"strings"
	"time"

	"muster/access"
	"muster/api"
	"muster/internal/manifest"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/server/fault"
	"muster/server/web"
	"muster/windows"
)

// A Look has the schedules as they were read for an apply of several kinds.
type Look struct {
	List []hub.Schedule

	stamp string
	now   time.Time
	of    Resource
}

// Look reads the schedules.
func (s Resource) Look(ctx context.Context) (Look, error) {
	// The stamp comes first: a change after it makes the reading below stale.
	stamp, now, err := s.Ticks.ScheduleStamp(ctx)
	if err != nil {
		return Look{}, err
	}
	list, err := s.Book.Schedules(ctx)
	return Look{list, stamp, now, s}, err
}

// Sees reports whether the caller sees a schedule.
func (l Look) Sees(ctx context.Context, q hub.Schedule) (bool, error) {
	return l.of.may(ctx, q, access.See)
}

// Prepare returns the change that writes these schedules and removes those with the names in gone,
// and what may surprise the author. Of gone and changed schedules the running tasks continue.
func (l Look) Prepare(ctx context.Context, set []windows.Entry, gone []string, g web.Giver) (
	hub.Prepared, []string, error) {
	var wrong []error
	for _, e := range set {
		wrong = append(wrong, openly(l.of.Catalog(), e)...)
	}
	if wrong = append(wrong, l.tooMany(set, gone)...); len(wrong) > 0 {
		return hub.Prepared{}, nil, web.Refusal(wrong)
	}
	was := map[string]hub.Schedule{}
	for _, one := range l.List {
		was[one.Name] = one
	}
	why, err := l.of.refusals(ctx, set, g)
	if err != nil {
		return hub.Prepared{}, nil, err
	}
	p, notes := applying{giver: g}, []string{}
	for i, e := range set {
		old, found := was[e.Name]
		if old.Doubt() != nil {
			old.Schedule = jobs.Schedule{Entry: windows.Entry{Name: e.Name}, Version: old.Version}
		}
		p.entry(e, old, found, l.now)
		if why[i] != "" {
			notes = append(notes, "schedule "+e.Name+": a tick now would have no task: "+why[i])
		}
		for _, note := range p.out.Schedules[len(p.out.Schedules)-1].Notes {
			notes = append(notes, "schedule "+e.Name+": "+note)
		}
	}
	for _, name := range gone {
		p.changes = append(p.changes, hub.ScheduleChange{Was: was[name]})
	}
	change, err := l.of.Book.PrepareSchedules(l.stamp, p.changes)
	return change, notes, err
}

// tooMany returns a mistake for each owner who would have too many schedules.
func (l Look) tooMany(set []windows.Entry, gone []string) []error {
	left := map[string]bool{}
	for _, name := range gone {
		left[name] = true
	}
	for _, e := range set {
		left[e.Name] = true
	}
	s := sorting{stay: map[string]int{}}
	for _, one := range l.List {
		if !left[one.Name] {
			s.stay[one.Owner]++
		}
	}
	return s.tooMany(set)
}

// keep refuses to change or remove schedules that come from elsewhere.
func (s Resource) keep(ctx context.Context, list []api.AppliedSchedule) error {
	var names []string
	for _, one := range list {
		if one.Change == api.Changed || one.Change == api.Removed {
			names = append(names, one.Name)
		}
	}
	return s.Owned.refuse(ctx, names...)
}

// Owned says why some schedules must not be changed here: they come from elsewhere. nil: none does.
type Owned func(ctx context.Context, kind string, names ...string) ([]string, error)

func (f Owned) refuse(ctx context.Context, names ...string) error {
	if f == nil || len(names) == 0 {
		return nil
	}
	why, err := f(ctx, manifest.Schedule, names...)
	if err == nil && len(why) > 0 {
		err = fault.Contradict(strings.Join(why, "; "))
	}
	return web.Problem(err)
}

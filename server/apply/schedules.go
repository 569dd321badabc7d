package apply

import (
	"context"

	"muster/internal/manifest"
	"muster/jobs/queue/hub"
	"muster/server/schedules"
	"muster/windows"
)

// Schedules is the kind of schedules.
type Schedules struct{ schedules.Resource }

// Words returns the word for schedules.
func (Schedules) Words() []string { return []string{manifest.Schedule} }

// Look reads the schedules.
func (k Schedules) Look(ctx context.Context) (View, error) {
	look, err := k.Resource.Look(ctx)
	return scheduleView{look}, err
}

// May refuses a caller who may not run the work of a schedule in the whole house: its selector is
// looked up at each tick, among hosts that nobody knows today. For a schedule that can pick hosts
// of its owner only, the right there is enough.
func (k Schedules) May(ctx context.Context, e manifest.Entry) error { return mayRun(ctx, e) }

// Sees reports whether the caller sees the hosts of a schedule.
func (v scheduleView) Sees(ctx context.Context, e manifest.Entry) (bool, error) {
	one := hub.Schedule{}
	one.Entry = e.Value.(windows.Entry)
	return v.Look.Sees(ctx, one)
}

type scheduleView struct{ schedules.Look }

// Entries returns the schedules that are believed. A schedule that is not is written anew.
func (v scheduleView) Entries() []manifest.Entry {
	var out []manifest.Entry
	for _, s := range v.List {
		e := manifest.OfSchedule(s.Entry)
		if s.Doubt() != nil {
			e.Value = windows.Entry{Name: s.Name}
		}
		out = append(out, e)
	}
	return out
}

// Again returns false: what is in Redis is in force, or nothing is.
func (scheduleView) Again() bool { return false }

// Prepare returns the change of schedules.
func (v scheduleView) Prepare(ctx context.Context, a Ask, steps []manifest.Step) (Ready, error) {
	set, gone := named(steps, manifest.Schedule)
	var list []windows.Entry
	for _, e := range a.Set.Entries {
		if _, writes := set[e.Name]; writes && e.Kind == manifest.Schedule {
			list = append(list, e.Value.(windows.Entry))
		}
	}
	change, notes, err := v.Look.Prepare(ctx, list, gone, a.Giver)
	return Ready{Change: change, Notes: notes}, err
}

// Write returns the schedules as documents.
func (v scheduleView) Write() (texts []manifest.Text, beside []string, err error) {
	for _, s := range v.List {
		if d := s.Doubt(); d != nil {
			beside = append(beside, "schedule "+s.Name+" is not believed: "+d.Error())
			continue
		}
		e := manifest.OfSchedule(s.Entry)
		texts = append(texts, manifest.Text{Entry: e, Document: manifest.WriteSchedule(s.Entry)})
	}
	return texts, beside, nil
}

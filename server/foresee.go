package server

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	forecast "muster/jobs/plan"
	"muster/server/intake"
	"muster/windows"
)

type (
	foreseeInput struct {
		Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.Submit
	}
	foreseeOutput  struct{ Body api.Foresight }
	calibrateInput struct {
		Days int `query:"days" default:"30" minimum:"1" maximum:"4000" doc:"plans of so many days"`
	}
	calibrateOutput struct{ Body api.Calibration }
)

// foresee answers POST /v1/plan. It changes nothing but the list of plans.
func (s *Server) foresee(ctx context.Context, in *foreseeInput) (*foreseeOutput, error) {
	name, proven, err := operator(in.who, in.Body.As, in.User)
	p, err := s.intake.submits.Foresee(ctx, intake.Ask{Body: in.Body, Operator: name, Proven: proven,
		Wrong: mistakes("body.as", err)})
	if err != nil {
		return nil, problem(err)
	}
	w, rows, err := s.foretell(ctx, p)
	if err != nil {
		return nil, problem(err)
	}
	begun := s.now()
	list := forecast.Run(w.World)
	last := len(w.Tasks) - 1
	f := api.Foresight{Plan: api.Plan{ID: string(jobs.NewTaskID(s.now(), s.chance())),
		At: jobs.Time{Time: w.Now}, Runbook: p.Task.Spec.Runbook, On: p.Task.Spec.On,
		Operator: name, Hosts: len(p.Names), Start: in.Body.At,
		Done: jobs.Time{Time: list[last].Done}},
		Begins: jobs.Time{Time: list[last].Started}, Half: jobs.Time{Time: list[last].Half},
		Takes: w.takenTimes(), Notes: w.notes}
	if why := p.Task.Spec.Override; why != "" {
		f.Notes = append(f.Notes, "freezes do not hold for it: "+why)
	}
	if closed := p.LeftOut.Closed; closed != "" {
		f.Notes = append(f.Notes, "left out, as no approved window is known for them: "+closed)
	}
	fill(&f, list[last], w.Tasks[last])
	for _, n := range forecast.Needs(w.World, w.Tasks[last]) {
		f.Slots = append(f.Slots, api.SlotNeed(n))
	}
	for i, one := range list[:last] {
		rows[i].Done = jobs.Time{Time: one.Done}
		rows[i].Left = undone(one)
	}
	f.Others = rows
	s.log.Debug("planned", "hosts", f.Hosts, "others", len(rows), "took", s.now().Sub(begun))
	if s.history != nil {
		if err := s.history.SavePlan(ctx, f.Plan); err != nil {
			f.Notes = append(f.Notes, "the plan is not kept for a comparison: "+err.Error())
		}
	}
	return &foreseeOutput{filled(f)}, nil
}

// filled has lists where JSON shall show [].
func filled(f api.Foresight) api.Foresight {
	f.Openings, f.Left = append([]api.FilledWindow{}, f.Openings...), append([]api.LeftHosts{},
		f.Left...)
	f.Slots, f.Others = append([]api.SlotNeed{}, f.Slots...), append([]api.OtherTask{}, f.Others...)
	f.Notes = append([]string{}, f.Notes...)
	return f
}

func undone(f forecast.Forecast) (n int) {
	for _, j := range f.Jobs {
		if j.Never != "" {
			n++
		}
	}
	return n
}

// fill tells in which openings hosts are done, and which are not.
func fill(f *api.Foresight, c forecast.Forecast, t forecast.Task) {
	opens := map[string]int{}
	left := map[string][]string{}
	for i, j := range c.Jobs {
		if j.Never != "" {
			left[j.Never] = append(left[j.Never], t.Jobs[i].Place.Host)
			f.Never++
			continue
		}
		if j.Opening.End.IsZero() {
			continue
		}
		key := j.Opening.Start.String() + j.Opening.End.String() + fmt.Sprint(j.Opening.Windows)
		at, known := opens[key]
		if !known {
			at = len(f.Openings)
			opens[key] = at
			f.Openings = append(f.Openings,
				api.FilledWindow{Start: jobs.Time{Time: j.Opening.Start},
					End: jobs.Time{Time: j.Opening.End}, Windows: j.Opening.Windows})
		}
		f.Openings[at].Hosts++
	}
	slices.SortFunc(f.Openings, func(a, b api.FilledWindow) int {
		return a.Start.Compare(
			b.Start.Time)
	})
	for why, hosts := range left {
		f.Left = append(f.Left, api.LeftHosts{Count: len(hosts), Hosts: fleet.Fold(hosts),
			Why: why})
	}
	slices.SortFunc(f.Left, func(a, b api.LeftHosts) int { return b.Count - a.Count })
}

// calibrate compares plans with what happened.
func (s *Server) calibrate(ctx context.Context, in *calibrateInput) (*calibrateOutput, error) {
	if s.history == nil {
		return nil, problem(errNoHistory)
	}
	c, err := s.history.Calibrate(ctx, s.now().AddDate(0, 0, -in.Days))
	if err != nil {
		return nil, problem(err)
	}
	return &calibrateOutput{c}, nil
}

// placeOf is where a host is, and what its jobs hold meanwhile.
func placeOf(h fleet.Host, disruptive bool, needs []string, limits []fleet.Limit) (windows.Place,
	[]string) {
	holds := append(fleet.Needs(h, limits), needs...)
	if disruptive && h.Group != "" {
		holds = append(holds, "group/"+h.Group)
	}
	slices.Sort(holds)
	return jobs.Place(h), slices.Compact(holds)
}

// lasts is how long a task takes on a host: usually, and at most as a rule. It is what a
// worker takes to admit the job; see attempt.rule there.
func (w *foretelling) lasts(spec jobs.Spec, h fleet.Host) (usual, most time.Duration) {
	field := jobs.EstimateField(spec.Work(), h)
	e := w.estimates[field]
	if usual, most = e.P50, e.P90; most == 0 {
		usual, most = spec.Expect, spec.Expect
	}
	if w.taken != nil {
		t := w.taken[field]
		if t == nil {
			t = &api.TakenTime{Model: h.Labels["model"], Customer: h.Customer, Successes: e.N,
				Usual: usual.Seconds(), Most: most.Seconds(), Unsaid: e.P90 == 0 && spec.Unsaid}
			w.taken[field] = t
		}
		t.Hosts++
	}
	return usual, most
}

// takenTimes are the times that the task was taken to need, of the most hosts first.
func (w *foretelling) takenTimes() []api.TakenTime {
	out := []api.TakenTime{}
	for _, t := range w.taken {
		out = append(out, *t)
	}
	slices.SortFunc(out, func(a, b api.TakenTime) int {
		return cmp.Or(b.Hosts-a.Hosts, cmp.Compare(a.Model, b.Model), cmp.Compare(a.Customer, b.Customer))
	})
	return out
}

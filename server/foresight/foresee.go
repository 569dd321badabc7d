package foresight

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	forecast "muster/jobs/plan"
	"muster/jobs/quarantine"
	"muster/server/draft"
	"muster/windows"
)

// Foresee says when a draft would be done, as far as is known now. It changes nothing.
func (f *Forecaster) Foresee(ctx context.Context, p draft.Draft) (api.Foresight, error) {
	w, rows, err := f.foretell(ctx, p)
	if err != nil {
		return api.Foresight{}, err
	}
	list := forecast.Run(w.World)
	last := len(w.Tasks) - 1
	out := api.Foresight{Plan: api.Plan{At: jobs.Time{Time: w.Now}, Runbook: p.Task.Spec.Runbook,
		On: p.Task.Spec.On, Hosts: len(p.Names), Done: jobs.Time{Time: list[last].Done}},
		Begins: jobs.Time{Time: list[last].Started}, Half: jobs.Time{Time: list[last].Half},
		Takes: w.takenTimes(), Notes: w.notes}
	if why := p.Task.Spec.Override; why != "" {
		out.Notes = append(out.Notes, "freezes do not hold for it: "+why)
	}
	for _, line := range p.Held {
		if strings.Contains(line, quarantine.In) {
			out.Notes = append(out.Notes, "left out: "+line)
		}
	}
	if closed := p.LeftOut.Closed; closed != "" {
		out.Notes = append(out.Notes, "left out, as no approved window is known for them: "+closed)
	}
	fill(&out, list[last], w.Tasks[last])
	for _, n := range forecast.Needs(w.World, w.Tasks[last]) {
		out.Slots = append(out.Slots, api.SlotNeed(n))
	}
	for i, one := range list[:last] {
		rows[i].Done = jobs.Time{Time: one.Done}
		rows[i].Left += undone(one)
	}
	out.Others = slices.DeleteFunc(rows, func(t api.OtherTask) bool { return !w.seen[t.Task] })
	return filled(out), nil
}

// filled returns a forecast with lists where JSON shall show [].
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

// fill lists in which openings hosts are done, and the hosts that are not.
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

// placeOf returns where a host is, and the groups and limits that its jobs hold.
func placeOf(h fleet.Host, disruptive bool, needs []string, limits []fleet.Limit) (windows.Place,
	[]string) {
	holds := append(fleet.Needs(h, limits), needs...)
	if disruptive && h.Group != "" {
		holds = append(holds, "group/"+h.Group)
	}
	slices.Sort(holds)
	return jobs.Place(h), slices.Compact(holds)
}

// lasts returns how long a task takes on a host: usually, and at most as a rule. A worker admits
// the job by the same times; see attempt.rule there.
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

// takenTimes returns the times that stand for the task, of the most hosts first.
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

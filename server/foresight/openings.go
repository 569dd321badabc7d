package foresight

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	forecast "muster/jobs/plan"
	"muster/server/draft"
	"muster/server/web"
)

// Routes has the route about the openings ahead.
type Routes struct{ Forecaster *Forecaster }

type openingsOutput struct{ Body api.OpeningsAhead }

// Routes registers the route.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/plan/openings",
		"Tell what the tasks of the queue would do in the openings ahead"), s.openings)
}

// openings answers GET /v1/plan/openings.
func (s Routes) openings(ctx context.Context, _ *web.Nothing) (*openingsOutput, error) {
	out, err := s.Forecaster.Openings(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &openingsOutput{out}, nil
}

// Openings foretells in which openings the jobs of the queue that need one would be done, if
// nothing else came. Tasks and hosts that the caller does not see count, and have no name in it.
func (f *Forecaster) Openings(ctx context.Context) (api.OpeningsAhead, error) {
	w, _, err := f.ground(ctx, draft.Lane{})
	if err != nil {
		return api.OpeningsAhead{}, err
	}
	w.lanes.turns(w.Tasks)
	out := api.OpeningsAhead{At: jobs.Time{Time: w.Now}, Openings: []api.OpeningAhead{},
		Left: []api.PlannedPart{}, Notes: append([]string{}, w.notes...)}
	sees, at := web.ViewOf(ctx).Sees, map[string]int{}
	for i, fore := range forecast.Run(w.World) {
		if t := w.Tasks[i]; t.Work.Window && w.seen[t.ID] {
			share(&out, at, parts{t, fore}, sees)
		}
	}
	slices.SortStableFunc(out.Openings, func(a, b api.OpeningAhead) int {
		return cmp.Or(a.Start.Compare(b.Start.Time), a.End.Compare(b.End.Time))
	})
	return out, nil
}

// parts is a task with the fates of its jobs.
type parts struct {
	task forecast.Task
	fore forecast.Forecast
}

// share puts the jobs of a task into the openings in which they would be done. at has the places of
// the openings in the answer.
func share(out *api.OpeningsAhead, at map[string]int, p parts, sees func(string) bool) {
	in, hosts := map[string]*api.PlannedPart{}, map[string][]string{}
	var keys []string
	for i, j := range p.fore.Jobs {
		host := p.task.Jobs[i].Place.Host
		if p.task.Jobs[i].Busy || !sees(host) {
			continue
		}
		key := "left: " + j.Never
		if j.Never == "" {
			key = fmt.Sprint(j.Opening.Start.Unix(), j.Opening.End.Unix(), j.Opening.Windows)
			if _, known := at[key]; !known {
				at[key] = len(out.Openings)
				out.Openings = append(out.Openings, api.OpeningAhead{
					Start: jobs.Time{Time: j.Opening.Start}, End: jobs.Time{Time: j.Opening.End},
					Windows: append([]string{}, j.Opening.Windows...)})
			}
		}
		if in[key] == nil {
			in[key] = &api.PlannedPart{Task: p.task.ID, Runbook: p.task.Work.Runbook,
				Operator: p.task.Operator, Why: j.Never}
			keys = append(keys, key)
		}
		in[key].Count++
		hosts[key] = append(hosts[key], host)
		if j.Never == "" && j.End.After(in[key].Done.Time) {
			in[key].Done = jobs.Time{Time: j.End}
		}
	}
	for _, key := range keys {
		in[key].Hosts = fleet.Fold(hosts[key])
		if in[key].Why != "" {
			out.Left = append(out.Left, *in[key])
			continue
		}
		o := &out.Openings[at[key]]
		o.Parts = append(o.Parts, *in[key])
	}
}

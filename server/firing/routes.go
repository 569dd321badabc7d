package firing

import (
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/events"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue/firings"
	"muster/server/web"
	"muster/triggers"
)

// Routes shows triggers and what they did.
type Routes struct {
	*Firer
	// Sees reports whether a caller sees a task.
	Sees func(ctx context.Context, id jobs.TaskID, host string) (bool, error)
}

type (
	triggerInput struct {
		Trigger string `path:"trigger"`
	}
	testInput    struct{ Body api.TriggerTest }
	firingsInput struct {
		Trigger string `query:"trigger" maxLength:"100" doc:"only firings of this trigger"`
		Event   string `query:"event" maxLength:"100" doc:"only firings of this event"`
		From    int    `query:"from" minimum:"0" maximum:"100000" doc:"the place of the first one"`
		Limit   int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	}
	listOutput    struct{ Body api.TriggerList }
	oneOutput     struct{ Body api.TriggerInfo }
	testOutput    struct{ Body api.TriggerTested }
	firingsOutput struct{ Body api.FiringList }
)

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/triggers", "List the triggers in force"), s.list)
	huma.Register(api, web.Get("/v1/triggers/{trigger}", "Show a trigger"), s.show)
	test := web.Post("/v1/triggers/test", "Say what triggers would do about an event")
	test.MaxBodyBytes = testMax
	huma.Register(api, test, s.test)
	huma.Register(api, web.Get("/v1/firings", "List what triggers did, the newest first"), s.firings)
}

// testMax bounds the body of a test: an event of 1 MiB, and the words around it.
const testMax = 1<<20 + 64<<10 // bytes

func (s Routes) list(ctx context.Context, _ *web.Nothing) (*listOutput, error) {
	past, _, err := s.Book.Memories(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	set, err := s.Keeper.Set(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &listOutput{api.TriggerList{Triggers: []api.TriggerInfo{}}}
	for _, t := range set.All() {
		out.Body.Triggers = append(out.Body.Triggers, s.info(t, past[t.Name]))
	}
	out.Body.Complaint = s.Keeper.Complaint()
	return out, nil
}

func (s Routes) show(ctx context.Context, in *triggerInput) (*oneOutput, error) {
	set, err := s.Keeper.Set(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	t, found := set.Find(in.Trigger)
	if !found {
		return nil, huma.Error404NotFound(fmt.Sprintf("there is no trigger %s; `muster trigger ls` "+
			"lists them", wording.Quote(in.Trigger)))
	}
	past, _, err := s.Book.Memories(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &oneOutput{s.info(t, past[t.Name])}, nil
}

func (s Routes) info(t triggers.Trigger, p triggers.Past) api.TriggerInfo {
	w := t.Work
	i := api.TriggerInfo{Name: t.Name, Enabled: t.Enabled, Principal: t.Principal(),
		Sources: t.Match.Sources, Kinds: t.Match.Kinds, Customers: t.Match.Customers,
		Runbook: w.Runbook, TriggerAim: api.TriggerAim{On: w.Aim.On, AtMost: w.Aim.AtMost,
			Narrowed: w.Aim.Words(), Limit: t.Limit.String(), Debounce: t.Debounce.String()},
		TriggerPast: api.TriggerPast{Recent: t.Recent(p, s.Now())}}
	for _, c := range t.Match.When {
		i.When = append(i.When, c.String())
	}
	for _, a := range w.Args {
		i.Args = append(i.Args, a.String())
	}
	for _, h := range p.Held {
		i.Waiting = append(i.Waiting, h.Bound.Event)
	}
	slices.Sort(i.Waiting)
	return i
}

// test says what triggers would do about an event, and changes nothing.
func (s Routes) test(ctx context.Context, in *testInput) (*testOutput, error) {
	b := in.Body
	set, err := s.Keeper.Set(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	if _, found := set.Find(b.Trigger); b.Trigger != "" && !found {
		return nil, web.Refusal([]error{web.Mistake("body.trigger", "there is no trigger %s",
			wording.Quote(b.Trigger))})
	}
	list, err := s.Foresee(ctx, events.Event{ID: "test", Source: b.Source, Kind: b.Kind,
		Customer: b.Customer, At: s.Now(), Body: b.Body}, b.Trigger)
	if err != nil {
		return nil, web.Problem(err)
	}
	return &testOutput{api.TriggerTested{Decisions: list}}, nil
}

// Foresee says what triggers would do about an event, or one of them, and changes nothing.
func (f *Firer) Foresee(ctx context.Context, e events.Event, only string) (
	[]api.TriggerDecision, error) {
	past, _, err := f.Book.Memories(ctx)
	if err != nil {
		return nil, err
	}
	set, err := f.Keeper.Set(ctx)
	if err != nil {
		return nil, err
	}
	m := triggers.Memory{Now: f.Now(), Past: past}
	if m.Stems, m.Doubt, err = f.descent(ctx, e); err != nil {
		return nil, err
	}
	out := []api.TriggerDecision{}
	for _, d := range set.Decide(e, m) {
		if only != "" && d.Trigger != only {
			continue
		}
		t, _ := set.Find(d.Trigger)
		one, err := f.foresee(ctx, t, d)
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

// foresee adds to a decision what the task would be, or why there could be none.
func (f *Firer) foresee(ctx context.Context, t triggers.Trigger, d triggers.Decision) (
	api.TriggerDecision, error) {
	one := api.TriggerDecision{Trigger: d.Trigger, Result: string(d.Result),
		Why: append([]string{}, d.Why...), Due: jobs.Time{Time: d.Due}}
	if d.Result == triggers.Passes || d.Result == triggers.Refused {
		return one, nil
	}
	one.Runbook, one.Args = t.Work.Runbook, d.Bound.Args
	sub, err := f.ask(ctx, t, d.Bound, "", true)
	if err == nil {
		one.Hosts, one.Total = sub.Hosts, sub.Total
		return one, nil
	}
	why := refusal(err)
	if why == "" {
		return one, err
	}
	one.Result, one.Why = string(triggers.Refused), append(one.Why, why)
	return one, nil
}

// pagesMax bounds the pages that are read for one answer.
const pagesMax = 20

func (s Routes) firings(ctx context.Context, in *firingsInput) (*firingsOutput, error) {
	out := &firingsOutput{api.FiringList{Firings: []api.Firing{}}}
	for page := range pagesMax {
		from := in.From + page*web.JobsMax
		list, more, err := s.Book.List(ctx, from, web.JobsMax)
		if err != nil {
			return nil, web.Problem(err)
		}
		for _, r := range list {
			if len(out.Body.Firings) == in.Limit {
				out.Body.Next = from
				return out, nil
			}
			from++
			if in.Trigger != "" && r.Trigger != in.Trigger || in.Event != "" && r.Event != in.Event {
				continue
			}
			seen, err := s.sees(ctx, r)
			if err != nil {
				return nil, web.Problem(err)
			}
			if seen {
				out.Body.Firings = append(out.Body.Firings, shown(r))
			}
		}
		if !more {
			return out, nil
		}
	}
	out.Body.Next = in.From + pagesMax*web.JobsMax
	return out, nil
}

// sees reports whether the caller sees all that a firing concerns.
func (s Routes) sees(ctx context.Context, r firings.Record) (bool, error) {
	if web.ViewOf(ctx).All() {
		return true, nil
	}
	if r.Task == "" {
		return false, nil
	}
	return s.Sees(ctx, r.Task, "")
}

func shown(r firings.Record) api.Firing {
	return api.Firing{Event: r.Event, Trigger: r.Trigger, Source: r.Source, Kind: r.Kind,
		Customer: r.Customer, At: r.At, Result: string(r.Result), Why: r.Why, Task: r.Task,
		Hosts: r.Hosts, Stems: r.Stems}
}

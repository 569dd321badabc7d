package arrivals

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/events"
	"muster/fleet"
	"muster/ingress"
	"muster/internal/wording"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/inbox"
	"muster/server/web"
)

// Routes shows events, and takes those that people send by hand.
type Routes struct {
	Needs
	Keeper *Keeper
	// Customer returns the names of the hosts of a customer.
	Customer func(name string) []string
	// Foresee says what triggers would do about an event; nil: there are none.
	Foresee func(ctx context.Context, e events.Event, only string) ([]api.TriggerDecision, error)
	Log     hclog.Logger
	Now     func() time.Time
}

type (
	listInput struct {
		Source   string `query:"source"`
		Customer string `query:"customer"`
		Kind     string `query:"kind"`
		State    string `query:"state" enum:"waiting,done,stuck,doubted"`
		Before   int64  `query:"before" doc:"only events with a lower number" minimum:"0"`
		Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
	}
	eventInput struct {
		Event string `path:"event"`
	}
	sendInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.EventSend
	}
	replayInput struct {
		web.Order
		Event string `path:"event"`
	}
	listOutput    struct{ Body api.EventList }
	eventOutput   struct{ Body api.Event }
	takenOutput   struct{ Body api.EventTaken }
	sourcesOutput struct{ Body api.EventSources }
	foreseeOutput struct{ Body api.EventForeseen }
)

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/inbox", "List events from elsewhere, the newest first"), s.list)
	huma.Register(api, web.Get("/v1/inbox/{event}", "Show an event with its body"), s.show)
	huma.Register(api, web.Get("/v1/ingress", "List the sources of events"), s.sources)
	send := web.Post("/v1/inbox", "Send an event by hand")
	send.MaxBodyBytes = 2 * ingress.BodyMax
	huma.Register(api, send, s.send)
	huma.Register(api, web.Get("/v1/inbox/{event}/replay", "Say what a replay of an event would do"),
		s.foresee)
	huma.Register(api, web.Post("/v1/inbox/{event}/replay", "Send the body of an event again, as a "+
		"new event"), s.replay)
}

var errNone = huma.Error404NotFound("this server takes no events")

func errGone(id string) error {
	return huma.Error404NotFound(fmt.Sprintf("there is no event %s, or it was forgotten",
		wording.Quote(web.Clip(id))))
}

// sees reports whether the caller sees the events of a customer: all work on all its hosts.
func (s Routes) sees(ctx context.Context, customer string) bool {
	v := web.ViewOf(ctx)
	if v.All() {
		return true
	}
	if customer == "" {
		return false
	}
	hosts := s.Customer(customer)
	return len(hosts) > 0 && v.SeesAll(hosts...)
}

func (s Routes) list(ctx context.Context, in *listInput) (*listOutput, error) {
	if s.Inbox == nil {
		return nil, errNone
	}
	seen := map[string]bool{}
	list, next, err := s.Inbox.List(ctx, inbox.Filter{Source: in.Source, Customer: in.Customer,
		Kind: in.Kind, State: inbox.State(in.State), Before: in.Before, Most: in.Limit,
		Sees: func(customer string) bool {
			may, known := seen[customer]
			if !known {
				may = s.sees(ctx, customer)
				seen[customer] = may
			}
			return may
		}})
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &listOutput{api.EventList{Events: []api.Event{}, Next: next}}
	for _, k := range list {
		out.Body.Events = append(out.Body.Events, shown(k))
	}
	return out, nil
}

// find returns an event that the caller sees.
func (s Routes) find(ctx context.Context, id string) (inbox.Kept, error) {
	if s.Inbox == nil {
		return inbox.Kept{}, errNone
	}
	if !ingress.IsID(id) {
		return inbox.Kept{}, errGone(id)
	}
	k, err := s.Inbox.Event(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound), err == nil && !s.sees(ctx, k.Customer):
		return k, errGone(id)
	case err != nil:
		return k, web.Problem(err)
	}
	return k, nil
}

func (s Routes) show(ctx context.Context, in *eventInput) (*eventOutput, error) {
	k, err := s.find(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	out := shown(k)
	if json.Valid(k.Body) {
		out.Body = k.Body
	}
	return &eventOutput{out}, nil
}

func shown(k inbox.Kept) api.Event {
	e := api.Event{Event: k.ID, Seq: k.Seq, Source: k.Source, Kind: k.Kind, Customer: k.Customer,
		Class: string(k.Class), At: jobs.Time{Time: k.At}, State: string(k.State), Size: k.Size,
		Work: api.EventWork{Tries: k.Tries, Error: k.Error, Ended: jobs.Time{Time: k.Ended},
			Firings: []api.EventFiring{}}, By: k.By, Again: k.Again, Doubt: k.Doubt}
	for _, f := range k.Outcome.Firings {
		e.Work.Firings = append(e.Work.Firings, api.EventFiring(f))
	}
	return e
}

func (s Routes) sources(ctx context.Context, _ *web.Nothing) (*sourcesOutput, error) {
	if s.Inbox == nil {
		return nil, errNone
	}
	tallies, err := s.Inbox.Tallies(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	counts := map[string]inbox.Tally{}
	for _, t := range tallies {
		counts[t.Source] = t
	}
	out := &sourcesOutput{api.EventSources{Sources: []api.EventSource{}}}
	for _, one := range append(s.Keeper.Sources().All(), ingress.Sent(),
		ingress.Own()) {
		t := counts[one.Name]
		out.Body.Sources = append(out.Body.Sources, api.EventSource{Source: one.Name,
			Preset: one.Preset, Customer: one.Customer, Class: string(one.Class),
			Counts: map[string]int64{"taken": t.Taken, "again": t.Again, "flood": t.Flood,
				"waiting": t.Waiting, "done": t.Done, "stuck": t.Stuck, "doubted": t.Doubted}})
	}
	out.Body.Complaint = s.Keeper.Complaint()
	return out, nil
}

// may refuses an event of a customer to a caller who has not a right on all its hosts. A
// customer of whom the caller does not see all hosts is treated as the whole house.
func (s Routes) may(ctx context.Context, verb access.Verb, customer string) error {
	v, act := web.ViewOf(ctx), access.Act{Verb: verb}
	if v.May(act) {
		return nil
	}
	hosts := s.Customer(customer)
	for _, one := range hosts {
		if !v.Sees(one) {
			return v.RefuseHouse(act)
		}
	}
	if customer == "" || len(hosts) == 0 {
		return v.RefuseHouse(act)
	}
	return v.Refuse(act, hosts)
}

// send answers POST /v1/inbox.
func (s Routes) send(ctx context.Context, in *sendInput) (*takenOutput, error) {
	if s.Inbox == nil {
		return nil, errNone
	}
	b := in.Body
	var wrong []error
	who, _, err := web.Operator(in.Caller(), "", in.User)
	if err != nil {
		wrong = append(wrong, err)
	}
	source := ingress.Sent()
	if b.Source != "" {
		var known bool
		if source, known = s.Keeper.Sources().Find(b.Source); !known {
			wrong = append(wrong, web.Mistake("body", "there is no source %s",
				wording.Quote(web.Clip(b.Source))))
		}
	}
	if b.Kind != "" {
		if err := ingress.CheckKind(b.Kind); err != nil {
			wrong = append(wrong, web.Mistake("body", "%s", err))
		}
	}
	if b.Customer != "" && fleet.CheckName(b.Customer) != nil {
		wrong = append(wrong, web.Mistake("body.customer", "%s is no name of a customer",
			wording.Quote(web.Clip(b.Customer))))
	}
	if b.Customer != "" && (source.Customer != "" || source.CustomerAt != "") {
		wrong = append(wrong, web.Mistake("body.customer", "source %s says whose its events are",
			source.Name))
	}
	d, err := source.Read(ingress.Message{Header: func(string) []string { return nil }, Body: b.Body})
	if err != nil {
		wrong = append(wrong, web.Mistake("body", "%s", err))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	if d.Customer == "" {
		d.Customer = b.Customer
	}
	if b.Kind != "" {
		d.Kind = b.Kind
	}
	// An event in the name of a source starts the tasks of its triggers, without its secret.
	if b.Source != "" {
		if err := s.may(ctx, access.Run, d.Customer); err != nil {
			return nil, err
		}
	}
	return s.take(ctx, inbox.Arrival{Event: events.Event{Source: source.Name, Kind: d.Kind,
		Customer: d.Customer, Body: b.Body}, Class: source.Class, By: who})
}

// replay answers POST /v1/inbox/{event}/replay.
func (s Routes) replay(ctx context.Context, in *replayInput) (*takenOutput, error) {
	k, err := s.find(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	g, wrong := in.Giver("replayed")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	if k.Doubt != "" {
		return nil, huma.Error409Conflict("no server has vouched for this event: " + k.Doubt)
	}
	return s.take(ctx, inbox.Arrival{Event: k.Event, Class: k.Class, By: g.Name, Again: k.ID})
}

// foresee answers GET /v1/inbox/{event}/replay.
func (s Routes) foresee(ctx context.Context, in *eventInput) (*foreseeOutput, error) {
	k, err := s.find(ctx, in.Event)
	if err != nil {
		return nil, err
	}
	out := api.EventForeseen{Event: k.ID, Refused: []string{}, Decisions: []api.TriggerDecision{},
		Firings: shown(k).Work.Firings}
	if k.Doubt != "" {
		out.Refused = append(out.Refused, "no server has vouched for this event: "+k.Doubt)
	}
	if err := s.may(ctx, access.Order, k.Customer); err != nil {
		out.Refused = append(out.Refused, wording.ErrorLine(web.Problem(err)))
	}
	if k.Doubt == "" && s.Foresee != nil {
		e := k.Event
		e.ID, e.At = "replay", s.Now() // no firing is remembered of it
		if out.Decisions, err = s.Foresee(ctx, e, ""); err != nil {
			return nil, web.Problem(err)
		}
	}
	return &foreseeOutput{out}, nil
}

// take stores an event of a person, under an id of its own. The bounds are those of events by hand.
func (s Routes) take(ctx context.Context, a inbox.Arrival) (*takenOutput, error) {
	if err := s.may(ctx, access.Order, a.Customer); err != nil {
		return nil, err
	}
	a.ID, a.At, a.Bounds = ingress.IDOf("by hand", rand.Text()), s.Now(), ingress.Sent().Bounds
	taken, err := s.Inbox.Take(ctx, a)
	var flood *inbox.Flood
	switch {
	case errors.As(err, &flood):
		return nil, huma.Error429TooManyRequests(flood.Error())
	case err != nil:
		return nil, web.Problem(err)
	}
	s.Log.Info("an event was sent by hand", "event", a.ID, "source", a.Source, "operator", a.By,
		"again", a.Again)
	return &takenOutput{api.EventTaken{Event: a.ID, Seq: taken.Seq}}, nil
}

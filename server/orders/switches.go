package orders

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/stock"
	"muster/server/web"
)

// Switches pauses and resumes tasks, customers and zones.
type Switches interface {
	Pause(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error)
	Resume(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error)
	PauseCustomer(ctx context.Context, customer, note string) (jobs.Switched, error)
	ResumeCustomer(ctx context.Context, customer, note string) (jobs.Switched, error)
	PauseZone(ctx context.Context, zone, note string) (jobs.Switched, error)
	ResumeZone(ctx context.Context, zone, note string) (jobs.Switched, error)
}

// Halts stops everything. Lift ends the halt, and no pause.
type Halts interface {
	Halt(ctx context.Context, note string) (jobs.Switched, error)
	Lift(ctx context.Context, note string) (jobs.Switched, error)
	Pauses(ctx context.Context) (jobs.Pauses, error)
}

type (
	taskOrder struct {
		web.Order
		Task string `path:"task"`
	}
	customerOrder struct {
		web.Order
		Customer string `path:"customer"`
	}
	zoneOrder struct {
		web.Order
		Zone string `path:"zone"`
	}
	groupOrder struct {
		web.Order
		Group string `path:"group"`
	}

	switchedOutput struct{ Body jobs.Switched }
	liftedOutput   struct{ Body api.Lifted }
	thawedOutput   struct{ Body api.Thawed }
)

// A turner is an order of the queue that pauses or resumes a thing.
type turner[T ~string] func(ctx context.Context, what T, note string) (jobs.Switched, error)

// turn carries out a turner and logs it.
func turn[T ~string](ctx context.Context, log hclog.Logger, g web.Giver, what T, do turner[T]) (
	*switchedOutput, error) {
	did, err := do(ctx, what, g.Note())
	if err != nil {
		return nil, err
	}
	if did.Zones == nil {
		did.Zones = []string{}
	}
	if did.Missing == nil {
		did.Missing = []string{}
	}
	web.LogOrder(log, string(did.What)+" "+g.Done, g, "name", did.Name, "already", did.Already,
		"overtaken", did.Overtaken,
		"moved", did.Moved, "missing", strings.Join(did.Missing, ","))
	return &switchedOutput{did}, nil
}

// SwitchRoutes carries out the orders that pause and resume tasks, customers and zones, and the
// halt.
type SwitchRoutes struct {
	Switches  Switches
	Halts     Halts
	Exclusion Exclusion
	Zones     Listing
	Stock     *stock.Store
	Log       hclog.Logger

	Whole  func(context.Context) error                     // see web.WhileAgreed
	Gone   func(context.Context, jobs.TaskID, error) error // makes the answer for a task that is gone
	Stands func(context.Context) (api.PauseList, error)    // lists all that stands still, with tasks
}

// Routes registers the routes of the resource.
func (s SwitchRoutes) Routes(api huma.API) {
	const task = "/v1/tasks/{task}"
	huma.Register(api, web.Post(task+"/pause", "Pause a task"), web.WhileAgreed(s.Whole, s.pauseTask))
	huma.Register(api, web.Post(task+"/resume", "Resume a task"),
		web.WhileAgreed(s.Whole, s.resumeTask))
	const customer, zone = "/v1/customers/{customer}", "/v1/zones/{zone}"
	huma.Register(api, web.Post(customer+"/pause", "Pause a customer's hosts"),
		web.WhileAgreed(s.Whole, s.pauseCustomer))
	huma.Register(api, web.Post(customer+"/resume", "Resume a customer's hosts"),
		web.WhileAgreed(s.Whole, s.resumeCustomer))
	huma.Register(api, web.Post(zone+"/pause", "Pause a zone"), web.WhileAgreed(s.Whole, s.pauseZone))
	huma.Register(api, web.Post(zone+"/resume", "Resume a zone"),
		web.WhileAgreed(s.Whole, s.resumeZone))
	huma.Register(api, web.Post(zone+"/thaw", "End a freeze before its time"), s.thaw)
	huma.Register(api, web.Post("/v1/halt", "Stop everything"), s.halt)
	huma.Register(api, web.Post("/v1/lift", "End the halt"), web.WhileAgreed(s.Whole, s.lift))
}

func (s SwitchRoutes) pauseTask(ctx context.Context, in *taskOrder) (*switchedOutput, error) {
	return s.turnTask(ctx, in, "paused", s.Switches.Pause)
}

func (s SwitchRoutes) resumeTask(ctx context.Context, in *taskOrder) (*switchedOutput, error) {
	return s.turnTask(ctx, in, "resumed", s.Switches.Resume)
}

func (s SwitchRoutes) turnTask(ctx context.Context, in *taskOrder, done string,
	do turner[jobs.TaskID]) (*switchedOutput, error) {
	g, wrong := in.Giver(done)
	id, err := jobs.ParseTaskID(in.Task)
	if wrong = append(wrong, web.Mistakes("path.task", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.Log, g, id, do)
	return out, s.Gone(ctx, id, err)
}

// pauseCustomer refuses a customer without hosts: an operator who mistypes a name must not believe
// that the customer is paused.
func (s SwitchRoutes) pauseCustomer(ctx context.Context, in *customerOrder) (*switchedOutput,
	error) {
	if err := knowCustomer(s.Stock, in.Customer, ""); err != nil {
		return nil, err
	}
	return s.turnCustomer(ctx, in, "paused", s.Switches.PauseCustomer)
}

// resumeCustomer refuses it likewise, unless it is paused: its hosts may be gone since then.
func (s SwitchRoutes) resumeCustomer(ctx context.Context, in *customerOrder) (*switchedOutput,
	error) {
	if unknown := knowCustomer(s.Stock, in.Customer, "; it was not paused"); unknown != nil {
		stand, err := s.Halts.Pauses(ctx)
		if err != nil {
			return nil, web.Problem(err)
		}
		if stand.Customers[in.Customer] == "" {
			return nil, unknown
		}
	}
	return s.turnCustomer(ctx, in, "resumed", s.Switches.ResumeCustomer)
}

// knowCustomer returns the answer for a customer without hosts. It returns nil if the customer has
// one, if there is no inventory, and for a text that is no name, which is a mistake among others.
func knowCustomer(hosts *stock.Store, name, more string) error {
	st := hosts.Now()
	if st == nil || fleet.CheckName(name) != nil {
		return nil
	}
	var all []string
	for _, h := range st.Hosts() {
		if h.Customer == name {
			return nil
		}
		if h.Customer != "" {
			all = append(all, h.Customer)
		}
	}
	slices.Sort(all)
	return huma.Error404NotFound(fmt.Sprintf("no host of the inventory is of customer %q%s%s",
		web.Clip(name), fleet.OrThere(name, slices.Compact(all)), more))
}

func (s SwitchRoutes) turnCustomer(ctx context.Context, in *customerOrder, done string,
	do turner[string]) (*switchedOutput, error) {
	g, wrong := in.Giver(done)
	wrong = append(wrong, web.Mistakes("path.customer", fleet.CheckName(in.Customer))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.Log, g, in.Customer, do)
	return out, web.NotThere(err, "there is no customer %q; `muster hosts` names them", in.Customer)
}

func (s SwitchRoutes) pauseZone(ctx context.Context, in *zoneOrder) (*switchedOutput, error) {
	return s.turnZone(ctx, in, "paused", s.Switches.PauseZone)
}

func (s SwitchRoutes) resumeZone(ctx context.Context, in *zoneOrder) (*switchedOutput, error) {
	return s.turnZone(ctx, in, "resumed", s.Switches.ResumeZone)
}

func (s SwitchRoutes) turnZone(ctx context.Context, in *zoneOrder, done string,
	do turner[string]) (*switchedOutput, error) {
	g, wrong := in.Giver(done)
	wrong = append(wrong, web.Mistakes("path.zone", fleet.CheckZone(in.Zone))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.Log, g, in.Zone, do)
	return out, noZone(ctx, s.Zones, err, in.Zone)
}

func (s SwitchRoutes) thaw(ctx context.Context, in *zoneOrder) (*thawedOutput, error) {
	g, wrong := in.Reasoned("thawed")
	wrong = append(wrong, web.Mistakes("path.zone", fleet.CheckZone(in.Zone))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	note := g.Note()
	already, err := s.Exclusion.Thaw(ctx, in.Zone, note)
	if err != nil {
		return nil, noZone(ctx, s.Zones, err, in.Zone)
	}
	web.LogOrder(s.Log, "zone thawed", g, "zone", in.Zone, "already", already)
	return &thawedOutput{api.Thawed{Zone: in.Zone, Already: already, Note: note}}, nil
}

// noZone returns the answer for an error about a zone that may not be there.
func noZone(ctx context.Context, c Listing, err error, zone string) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return web.Problem(err)
	}
	zones, _ := c.Zones(ctx) // that it is not there is what counts
	return huma.Error404NotFound(fmt.Sprintf("there is no zone %q%s; `muster queue` lists them",
		web.Clip(zone), fleet.OrThere(zone, zones)))
}

// halt stops everything: no job starts, and no next step of a running one.
func (s SwitchRoutes) halt(ctx context.Context, in *web.Order) (*switchedOutput, error) {
	g, wrong := in.Giver("halted")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.Log, g, "", func(ctx context.Context, _, note string) (
		jobs.Switched, error) {
		return s.Halts.Halt(ctx, note)
	})
	return out, web.Problem(err)
}

// lift ends the halt. Tasks, customers and zones with a pause of their own stay paused, and the
// answer lists them.
func (s SwitchRoutes) lift(ctx context.Context, in *web.Order) (*liftedOutput, error) {
	g, wrong := in.Reasoned("lifted")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.Log, g, "", func(ctx context.Context, _, note string) (
		jobs.Switched, error) {
		return s.Halts.Lift(ctx, note)
	})
	if err != nil {
		return nil, web.Problem(err)
	}
	answer := &liftedOutput{api.Lifted{Switched: out.Body}}
	answer.Body.Stay, err = s.Stands(ctx)
	return answer, web.Problem(err)
}

package server

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

// Cancels ends what of tasks is not running.
type Cancels interface {
	Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error)
	CancelJobs(ctx context.Context, ids []jobs.ID, note string) (jobs.Cancel, error)
}

// Switches pauses and resumes tasks, customers and zones.
type Switches interface {
	Pause(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error)
	Resume(ctx context.Context, id jobs.TaskID, note string) (jobs.Switched, error)
	PauseCustomer(ctx context.Context, customer, note string) (jobs.Switched, error)
	ResumeCustomer(ctx context.Context, customer, note string) (jobs.Switched, error)
	PauseZone(ctx context.Context, zone, note string) (jobs.Switched, error)
	ResumeZone(ctx context.Context, zone, note string) (jobs.Switched, error)
}

// Halts stops everything; Lift ends that, and nothing else.
type Halts interface {
	Halt(ctx context.Context, note string) (jobs.Switched, error)
	Lift(ctx context.Context, note string) (jobs.Switched, error)
	Pauses(ctx context.Context) (jobs.Pauses, error)
}

// Exclusion ends what keeps hosts and zones apart, after somebody has looked at them.
type Exclusion interface {
	ClearGroup(ctx context.Context, group, note string) (jobs.Cleared, error)
	ClearMarkers(ctx context.Context, zone, group, note string) error
	Thaw(ctx context.Context, zone, note string) (already bool, err error)
	ReleaseHost(ctx context.Context, zone, host, note string) (jobs.Released, error)
}

// Groups reads redundancy groups and limits.
type Groups interface {
	Groups(ctx context.Context) ([]jobs.Group, error)
	Limits(ctx context.Context) ([]jobs.Limit, error)
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

// turner is one of the orders of the queue that turn something on or off.
type turner[T ~string] func(ctx context.Context, what T, note string) (jobs.Switched, error)

// turn carries out an order that turns something on or off.
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

// switchRoutes answers the orders that let tasks, customers, zones or everything stand still.
type switchRoutes struct {
	queue Stores
	stock *stock.Store
	log   hclog.Logger

	whole  func(context.Context) error // see web.WhileAgreed
	gone   func(context.Context, jobs.TaskID, error) error
	stands func(context.Context, *pausesInput) (api.PauseList, error)
}

func (s switchRoutes) Routes(api huma.API) {
	const task = "/v1/tasks/{task}"
	huma.Register(api, web.Post(task+"/pause", "Pause a task"), web.WhileAgreed(s.whole, s.pauseTask))
	huma.Register(api, web.Post(task+"/resume", "Resume a task"),
		web.WhileAgreed(s.whole, s.resumeTask))
	const customer, zone = "/v1/customers/{customer}", "/v1/zones/{zone}"
	huma.Register(api, web.Post(customer+"/pause", "Pause a customer's hosts"),
		web.WhileAgreed(s.whole, s.pauseCustomer))
	huma.Register(api, web.Post(customer+"/resume", "Resume a customer's hosts"),
		web.WhileAgreed(s.whole, s.resumeCustomer))
	huma.Register(api, web.Post(zone+"/pause", "Pause a zone"), web.WhileAgreed(s.whole, s.pauseZone))
	huma.Register(api, web.Post(zone+"/resume", "Resume a zone"),
		web.WhileAgreed(s.whole, s.resumeZone))
	huma.Register(api, web.Post(zone+"/thaw", "End a freeze before its time"), s.thaw)
	huma.Register(api, web.Post("/v1/halt", "Stop everything"), s.halt)
	huma.Register(api, web.Post("/v1/lift", "End the halt"), web.WhileAgreed(s.whole, s.lift))
}

func (s switchRoutes) pauseTask(ctx context.Context, in *taskOrder) (*switchedOutput, error) {
	return s.turnTask(ctx, in, "paused", s.queue.Orders.Switches.Pause)
}

func (s switchRoutes) resumeTask(ctx context.Context, in *taskOrder) (*switchedOutput, error) {
	return s.turnTask(ctx, in, "resumed", s.queue.Orders.Switches.Resume)
}

func (s switchRoutes) turnTask(ctx context.Context, in *taskOrder, done string,
	do turner[jobs.TaskID]) (*switchedOutput, error) {
	g, wrong := in.Giver(done)
	id, err := jobs.ParseTaskID(in.Task)
	if wrong = append(wrong, web.Mistakes("path.task", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.log, g, id, do)
	return out, s.gone(ctx, id, err)
}

// pauseCustomer refuses a customer without hosts: who mistypes a name must not
// believe that it is paused.
func (s switchRoutes) pauseCustomer(ctx context.Context, in *customerOrder) (*switchedOutput,
	error) {
	if err := knowCustomer(s.stock, in.Customer, ""); err != nil {
		return nil, err
	}
	return s.turnCustomer(ctx, in, "paused", s.queue.Orders.Switches.PauseCustomer)
}

// resumeCustomer refuses it likewise, unless it is paused: its hosts may have gone since.
func (s switchRoutes) resumeCustomer(ctx context.Context, in *customerOrder) (*switchedOutput,
	error) {
	if unknown := knowCustomer(s.stock, in.Customer, "; it was not paused"); unknown != nil {
		stand, err := s.queue.Orders.Halts.Pauses(ctx)
		if err != nil {
			return nil, web.Problem(err)
		}
		if stand.Customers[in.Customer] == "" {
			return nil, unknown
		}
	}
	return s.turnCustomer(ctx, in, "resumed", s.queue.Orders.Switches.ResumeCustomer)
}

// knowCustomer is the answer about a name that no host has; nil if one has it, if there
// is no inventory, and if it is no name, which is said with what else is wrong.
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

func (s switchRoutes) turnCustomer(ctx context.Context, in *customerOrder, done string,
	do turner[string]) (*switchedOutput, error) {
	g, wrong := in.Giver(done)
	wrong = append(wrong, web.Mistakes("path.customer", fleet.CheckName(in.Customer))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.log, g, in.Customer, do)
	return out, web.NotThere(err, "there is no customer %q; `muster hosts` names them", in.Customer)
}

func (s switchRoutes) pauseZone(ctx context.Context, in *zoneOrder) (*switchedOutput, error) {
	return s.turnZone(ctx, in, "paused", s.queue.Orders.Switches.PauseZone)
}

func (s switchRoutes) resumeZone(ctx context.Context, in *zoneOrder) (*switchedOutput, error) {
	return s.turnZone(ctx, in, "resumed", s.queue.Orders.Switches.ResumeZone)
}

func (s switchRoutes) turnZone(ctx context.Context, in *zoneOrder, done string,
	do turner[string]) (*switchedOutput, error) {
	g, wrong := in.Giver(done)
	wrong = append(wrong, web.Mistakes("path.zone", fleet.CheckZone(in.Zone))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.log, g, in.Zone, do)
	return out, noZone(ctx, s.queue.Conn, err, in.Zone)
}

func (s switchRoutes) thaw(ctx context.Context, in *zoneOrder) (*thawedOutput, error) {
	g, wrong := in.Reasoned("thawed")
	wrong = append(wrong, web.Mistakes("path.zone", fleet.CheckZone(in.Zone))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	note := g.Note()
	already, err := s.queue.Orders.Exclusion.Thaw(ctx, in.Zone, note)
	if err != nil {
		return nil, noZone(ctx, s.queue.Conn, err, in.Zone)
	}
	web.LogOrder(s.log, "zone thawed", g, "zone", in.Zone, "already", already)
	return &thawedOutput{api.Thawed{Zone: in.Zone, Already: already, Note: note}}, nil
}

// noZone is problem for an error about a zone, which may not be there.
func noZone(ctx context.Context, c Conn, err error, zone string) error {
	if !errors.Is(err, queue.ErrNotFound) {
		return web.Problem(err)
	}
	zones, _ := c.Zones(ctx) // that it is not there is what counts
	return huma.Error404NotFound(fmt.Sprintf("there is no zone %q%s; `muster queue` lists them",
		web.Clip(zone), fleet.OrThere(zone, zones)))
}

// halt stops everything: no job starts, and no next step of a running one.
func (s switchRoutes) halt(ctx context.Context, in *web.Order) (*switchedOutput, error) {
	g, wrong := in.Giver("halted")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.log, g, "", func(ctx context.Context, _, note string) (
		jobs.Switched, error) {
		return s.queue.Orders.Halts.Halt(ctx, note)
	})
	return out, web.Problem(err)
}

// lift ends the halt. What was paused by itself stays so, and the answer says it.
func (s switchRoutes) lift(ctx context.Context, in *web.Order) (*liftedOutput, error) {
	g, wrong := in.Reasoned("lifted")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := turn(ctx, s.log, g, "", func(ctx context.Context, _, note string) (
		jobs.Switched, error) {
		return s.queue.Orders.Halts.Lift(ctx, note)
	})
	if err != nil {
		return nil, web.Problem(err)
	}
	answer := &liftedOutput{api.Lifted{Switched: out.Body}}
	answer.Body.Stay, err = s.stands(ctx, &pausesInput{Tasks: true})
	return answer, web.Problem(err)
}

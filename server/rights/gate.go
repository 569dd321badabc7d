package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"muster/access"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/web"
)

// Gate refuses requests to those who lack the right. It is a middleware of all routes.
type Gate struct {
	Keeper *Keeper
	Tasks  *Tasks

	// Customer returns the names of a customer's hosts.
	Customer func(name string) []string
	// Unknown returns the words for a host that is not there, as the view of a context shows it.
	Unknown func(ctx context.Context, host string) (string, error)
	// Refused is told of each request that is refused, with its answer's status.
	Refused func(ctx huma.Context, status int)
}

// Middleware gives the request its view of the house, and calls the route if the caller may.
func (g Gate) Middleware(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	x, ok := w.(*web.Exchange)
	if !ok { // nobody has identified the caller, so nobody knows what the caller may do
		web.WriteProblem(w, huma.Error500InternalServerError("nobody has looked at who asks"))
		return
	}
	op := ctx.Operation()
	n := needOf(op.Method, op.Path)
	if x.Who.Name == "" { // the guard passes this on only if it asks for the server's health
		if n.where == anybody {
			next(ctx)
			return
		}
		g.refuse(ctx, x, huma.Error403Forbidden("nobody says who asks"))
		return
	}
	v := web.NewView(g.Keeper.Rights(), whoOf(x.Who))
	x.Who.Admin = v.May(access.Act{Verb: access.Admin})
	ctx, sight := web.WithView(ctx, v)
	if err := g.check(ctx, v, n); err != nil {
		g.refuse(ctx, x, err)
		return
	}
	ctx, stop := g.watch(ctx, x, n, sight)
	defer stop()
	next(ctx)
}

// whoOf returns a caller as policies know it.
func whoOf(c web.Caller) access.Who {
	return access.Who{Principal: c.Name, Groups: c.Groups, Scope: c.Scope}
}

func (g Gate) refuse(ctx huma.Context, x *web.Exchange, err error) {
	web.WriteProblem(x, err)
	if !web.Probes(ctx.Context()) { // nobody tried anything
		g.Refused(ctx, x.Status)
	}
}

// check returns the answer that refuses a request; nil: it is allowed.
func (g Gate) check(ctx huma.Context, v *web.View, n need) error {
	if n.where == anybody {
		return nil
	}
	if len(v.Verbs()) == 0 {
		return v.RefuseHouse(access.Act{Verb: access.See})
	}
	act := access.Act{Verb: n.verb}
	switch n.where {
	case member:
		return nil
	case anywhere:
		return v.RefuseVerb(n.verb)
	case task:
		id, err := jobs.ParseTaskID(ctx.Param("task"))
		if err != nil { // the route says what is wrong with it
			return v.RefuseVerb(n.verb)
		}
		return g.task(ctx.Context(), v, act, id, "")
	case job:
		id, err := jobs.ParseID(ctx.Param("job"))
		if err != nil {
			return v.RefuseVerb(n.verb)
		}
		return g.task(ctx.Context(), v, act, id.Task(), id.Host())
	case host:
		return g.host(ctx.Context(), v, act, ctx.Param("host"))
	case customer:
		return g.customer(v, act, ctx.Param("customer"))
	case runbook:
		if name := ctx.Param("runbook"); !v.Runbook(name) {
			return huma.Error404NotFound(fmt.Sprintf("no runbook %q", web.Clip(name)))
		}
		return nil
	}
	if n.verb == access.See {
		return v.RefuseAll()
	}
	return v.RefuseHouse(act)
}

// task checks an act on a task, or on its job on one host. One that the caller does not see is not
// there.
func (g Gate) task(ctx context.Context, v *web.View, act access.Act, id jobs.TaskID,
	host string) error {
	if act.Verb == access.See && v.All() || act.Verb != access.See && v.May(act) {
		return nil
	}
	none := web.Problem(fmt.Errorf("task %s: %w", id, queue.ErrNotFound))
	t, err := g.Tasks.find(ctx, id)
	switch {
	case errors.Is(err, queue.ErrNotFound):
		return none
	case err != nil:
		return web.Problem(err)
	}
	hosts, seen := t.hosts, false
	if host == "" {
		seen = t.seen(v)
	} else if slices.Contains(t.hosts, host) {
		hosts, seen = []string{host}, t.seenOn(v, host)
	}
	if !seen {
		return none
	}
	act.Runbook = t.runbook
	return v.Refuse(act, hosts)
}

// host checks an act on a host. One that the caller does not see is not there.
func (g Gate) host(ctx context.Context, v *web.View, act access.Act, name string) error {
	if v.May(act) {
		return nil
	}
	if !v.Sees(name) {
		words, err := g.Unknown(ctx, name)
		if err != nil {
			return web.Problem(err)
		}
		return huma.Error404NotFound(words)
	}
	return v.Refuse(act, []string{name})
}

// customer checks an act on all hosts of a customer. The refusal does not say whether there is such
// a customer, unless the caller sees a host of it.
func (g Gate) customer(v *web.View, act access.Act, name string) error {
	if v.May(act) {
		return nil
	}
	hosts := g.Customer(name)
	for _, one := range hosts {
		if !v.Sees(one) {
			return v.RefuseHouse(act)
		}
	}
	if len(hosts) == 0 {
		return v.RefuseHouse(act)
	}
	return v.Refuse(act, hosts)
}

// Customers returns the function that finds the hosts of a customer in the inventory in force.
func Customers(inventory func() *fleet.Inventory) func(name string) []string {
	return func(name string) []string {
		v := inventory()
		if v == nil {
			return nil
		}
		var names []string
		for _, h := range v.Hosts() {
			if h.Customer == name {
				names = append(names, h.Name)
			}
		}
		return names
	}
}

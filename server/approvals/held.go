package approvals

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/submit"
	"muster/server/web"
	"muster/trust"
)

// A held task waits for signatures.
type held struct {
	info   jobs.TaskInfo
	order  submit.Order // with the signatures of its first zone
	parsed *trust.Order
	spec   jobs.Spec
	hosts  []host // of all zones; none before readHosts
	shares map[string][]string
}

// A host is one of an order, with the hash of its record that was signed.
type host struct{ zone, name, record string }

// waits reports whether a task can wait for signatures: it is neither committed nor cancelled.
func waits(t jobs.TaskInfo) bool {
	return t.State == jobs.TaskSubmitting && !t.CancelledInSubmit && t.Total > 0
}

// find returns a task that waits for signatures, or the answer that says what is wrong with it.
func (s Routes) find(ctx context.Context, text string) (*held, error) {
	id, err := jobs.ParseTaskID(text)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.task", err))
	}
	t, err := s.Tasks.Task(ctx, id)
	if err != nil {
		return nil, web.Problem(err)
	}
	is, err := s.Holds.IsHeld(ctx, id)
	if err != nil {
		return nil, web.Problem(err)
	}
	if !is || !waits(t) {
		return nil, huma.Error404NotFound(fmt.Sprintf("task %s does not wait for signatures: it is %s; "+
			"`muster approvals ls` lists those that do", id, t.State))
	}
	h, err := s.read(ctx, t)
	if errors.Is(err, queue.ErrNotFound) {
		return nil, huma.Error404NotFound(fmt.Sprintf("task %s has no order any more: it has expired",
			id))
	}
	if errors.Is(err, trust.ErrOrder) {
		return nil, huma.Error409Conflict(fmt.Sprintf("the order of task %s: %v; refuse the task with "+
			"`muster cancel %s`, and submit it anew", id, err, id))
	}
	return h, web.Problem(err)
}

// read reads the order of a task.
func (s Routes) read(ctx context.Context, t jobs.TaskInfo) (*held, error) {
	o, err := s.Orders.OrderIn(ctx, t.Zones[0], t.Task)
	if err != nil {
		return nil, err
	}
	h := &held{info: t, order: o, shares: map[string][]string{}}
	if h.parsed, err = trust.Parse(o.Bytes); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(h.parsed.Spec, &h.spec); err != nil {
		return nil, fmt.Errorf("%w: %w", trust.ErrOrder, err)
	}
	if h.parsed.Task != t.Task {
		return nil, fmt.Errorf("%w: it is that of task %s", trust.ErrOrder, h.parsed.Task)
	}
	return h, nil
}

// readHosts reads the hosts of an order, and checks that they are those which the order has.
func (s Routes) readHosts(ctx context.Context, h *held) error {
	for _, z := range h.parsed.Zones {
		texts, err := s.Orders.SharesIn(ctx, z.Name, h.info.Task, len(z.Shares))
		if err != nil {
			return web.Problem(err)
		}
		h.shares[z.Name] = texts
		for i, text := range texts {
			records, err := h.parsed.Share(z.Name, i, text)
			if err != nil {
				return huma.Error409Conflict(fmt.Sprintf("the order of task %s in zone %s: %v; refuse it with "+
					"`muster cancel %s`, and submit it anew", h.info.Task, z.Name, err, h.info.Task))
			}
			for name, record := range records {
				h.hosts = append(h.hosts, host{z.Name, name, record})
			}
		}
	}
	slices.SortFunc(h.hosts, func(a, b host) int { return cmp.Compare(a.name, b.name) })
	return nil
}

func (h *held) names() []string {
	names := make([]string, 0, len(h.hosts))
	for _, one := range h.hosts {
		names = append(names, one.name)
	}
	return names
}

// until returns when the task expires.
func (h *held) until() time.Time { return h.spec.Created.Time().Add(submit.HeldKeep) }

// described returns a held task as lists have it.
func (s Routes) described(h *held) api.HeldTask {
	t := api.HeldTask{Task: h.info.Task, Runbook: h.spec.Runbook, Operator: h.spec.Operator,
		Reason: h.spec.Reason, Hash: trust.HashOf(h.order.Bytes), Since: jobs.TimeOf(h.spec.Created),
		Until: jobs.Time{Time: h.until()}, Signed: []string{}}
	for _, z := range h.parsed.Zones {
		t.Hosts += z.Hosts
	}
	if rules, err := s.rules(); err == nil {
		t.Signed = rules.At(s.Now()).SignedBy(h.order.Bytes, h.order.Signatures)
	}
	return t
}

// detailed returns all that a person must see before they sign.
func (s Routes) detailed(h *held) api.HeldDetail {
	d := api.HeldDetail{HeldTask: s.described(h), On: h.spec.On, Ran: h.spec.Ran,
		BreakGlass: h.parsed.BreakGlass,
		NotBefore:  jobs.Time{Time: h.parsed.NotBefore}, NotAfter: jobs.Time{Time: h.parsed.NotAfter},
		Order: h.order.Bytes, Zones: []api.HeldZone{}, Customers: []api.HeldCustomer{}}
	for _, z := range h.parsed.Zones {
		d.Zones = append(d.Zones, api.HeldZone{Zone: z.Name, Hosts: z.Hosts, Shares: h.shares[z.Name]})
	}
	inventory := s.Stock.Hosts()
	by := map[string][]string{}
	for _, one := range h.hosts {
		known, _ := inventory.Host(one.name)
		by[known.Customer] = append(by[known.Customer], one.name)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		d.Customers = append(d.Customers, api.HeldCustomer{Customer: name, Count: len(by[name]),
			Hosts: fleet.Fold(by[name])})
	}
	if rules, err := s.rules(); err == nil {
		d.Missing = s.missing(h, rules)
	}
	return d
}

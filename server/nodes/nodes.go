package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/api"
	"muster/fleet"
	"muster/internal/serverkey"
	"muster/jobs"
	"muster/server/web"
	"muster/trust"
)

// Queue holds the methods of the queue for orders about nodes.
type Queue interface {
	Nodes(ctx context.Context) ([]jobs.Node, error)
	NodeOrders(ctx context.Context) (map[string]string, error)
	OrderNode(ctx context.Context, node string, zones []string,
		next func(last string, now int64) (string, error)) error
}

type (
	orderInput struct {
		web.Order
		Node string `path:"node"`
	}
	orderOutput struct{ Body api.NodeOrdered }
)

// Routes pauses and resumes nodes.
type Routes struct {
	Queue Queue
	Keys  func() (serverkey.Keys, error) // of the servers
	Log   hclog.Logger
}

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	const node = "/v1/nodes/{node}"
	huma.Register(api, web.Post(node+"/pause", "Let a node take nothing"),
		func(ctx context.Context, in *orderInput) (*orderOutput, error) { return s.turn(ctx, in, true) })
	huma.Register(api, web.Post(node+"/resume", "Let a node take jobs again"),
		func(ctx context.Context, in *orderInput) (*orderOutput, error) { return s.turn(ctx, in, false) })
}

// turn stores the order about a node. Jobs that the node has in hand continue.
func (s Routes) turn(ctx context.Context, in *orderInput, pause bool) (*orderOutput, error) {
	done := "resumed"
	if pause {
		done = "paused"
	}
	g, wrong := in.Giver(done)
	if pause && g.Reason == "" {
		wrong = append(wrong, web.Mistake("body.reason",
			"a reason is needed: say why the node must take nothing, for those who see it idle"))
	}
	wrong = append(wrong, web.Mistakes("path.node", fleet.CheckName(in.Node))...)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	node, err := s.find(ctx, in.Node)
	if err != nil {
		return nil, err
	}
	keys, err := s.Keys()
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &orderOutput{api.NodeOrdered{Node: in.Node, Paused: pause, Note: g.Note(),
		Lives: node.State != jobs.NodeGone}}
	err = s.Queue.OrderNode(ctx, in.Node, node.Zones, func(last string, now int64) (string, error) {
		number := now
		was, err := signed(last, in.Node, keys)
		if err != nil {
			return "", err
		}
		if was != nil {
			number = max(number, was.Number+1)
			if out.Body.Already = was.Paused == pause && pause; out.Body.Already {
				// Its person and reason stay. The number grows: the node may know a later order.
				out.Body.Note = was.Note
			}
		}
		return trust.NodeOrder{Node: in.Node, Number: number, Paused: pause, Note: out.Body.Note,
			At: time.UnixMicro(now)}.Sign(keys)
	})
	if err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.Log, "node "+done, g, "node", in.Node, "already", out.Body.Already)
	return out, nil
}

// find returns a node that Redis knows, or about which there is an order.
func (s Routes) find(ctx context.Context, name string) (jobs.Node, error) {
	nodes, err := s.Queue.Nodes(ctx)
	if err != nil {
		return jobs.Node{}, web.Problem(err)
	}
	var names []string
	for _, n := range nodes {
		if n.ID == name {
			return n, nil
		}
		names = append(names, n.ID)
	}
	standing, err := s.Queue.NodeOrders(ctx)
	if err != nil {
		return jobs.Node{}, web.Problem(err)
	}
	if standing[name] != "" {
		return jobs.Node{ID: name, State: jobs.NodeGone}, nil
	}
	return jobs.Node{}, huma.Error404NotFound(fmt.Sprintf("there is no node %q%s; `muster nodes` "+
		"lists them", web.Clip(name), fleet.OrThere(name, names)))
}

// read reads an order as Redis has it, to show it: only nodes act by it, and they check who has
// signed it. It returns nil if it cannot be read.
func read(text, node string) *trust.NodeOrder {
	o, err := trust.ReadNodeOrder(text, node, "", nil)
	if err != nil {
		return nil
	}
	return o
}

// signed returns the last order if a server has signed it, or there is no key; else nil: whoever
// else wrote it must not decide about the number of the next one.
func signed(text, node string, keys serverkey.Keys) (*trust.NodeOrder, error) {
	if keys.None() {
		return read(text, node), nil
	}
	by, err := trust.ServersOf(keys, time.Now())
	if err != nil {
		return nil, err
	}
	o, doubt := trust.ReadNodeOrder(text, node, keys.Installation(), &by)
	if doubt != nil {
		return nil, nil
	}
	return o, nil
}

// Tell adds to the notes of nodes which orders they have not taken yet.
func Tell(ctx context.Context, q Queue, list []jobs.Node) error {
	standing, err := q.NodeOrders(ctx)
	if err != nil {
		return err
	}
	for i, n := range list {
		text := standing[n.ID]
		if text == "" {
			continue
		}
		o := read(text, n.ID)
		switch {
		case o == nil:
			list[i].AddNote("an order about it in Redis is not of the form that servers write")
		case o.Paused && n.State == jobs.NodeGone:
			list[i].Paused = &jobs.Pause{Note: o.Note, At: jobs.Time{Time: o.At}}
		case o.Paused && n.Paused == nil:
			list[i].AddNote("it has not taken this order yet: " + o.Note)
		case !o.Paused && n.Paused != nil:
			list[i].AddNote("it has not taken this order yet: " + o.Note)
		}
	}
	return nil
}

// Package chains answers questions and orders about tasks that follow each other over HTTP.
//
// Floor 7: may import server/duties, server/reach, server/web, jobs/queue, and what is below.
package chains

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/duties"
	"muster/server/reach"
	"muster/server/web"
)

// Asking keeps what people order about a chain. AskChain reports whether that is new.
type Asking interface {
	AskChain(ctx context.Context, id jobs.TaskID, o jobs.ChainOrders) (fresh bool, err error)
}

// Tasks reads tasks. Its errors wrap queue.ErrNotFound.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Resource is the chains over HTTP.
type Resource struct {
	Duty  *duties.Chains
	Kept  Asking
	Care  duties.ChainCare
	Tasks Tasks
	Until web.Waiter
	Log   hclog.Logger

	// Sees reports whether the caller of a context sees a task.
	Sees func(ctx context.Context, id jobs.TaskID, host string) (bool, error)
}

// Info returns a chain, named by its own id or that of one of its tasks, if the caller may do
// something with it. A chain that the caller does not see is not there.
func (s Resource) Info(ctx context.Context, id jobs.TaskID, verb access.Verb) (jobs.ChainInfo,
	error) {
	c, o, result, err := s.Duty.Read(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		var t jobs.TaskInfo
		if t, err = s.link(ctx, id); err != nil {
			return jobs.ChainInfo{}, err
		}
		c, o, result, err = s.Duty.Read(ctx, t.Chain)
	}
	if err == nil {
		err = reach.Chain{Chain: c, ID: id}.May(ctx, verb)
	}
	if err != nil {
		return jobs.ChainInfo{}, web.Problem(err)
	}
	if result != nil {
		return *result, nil
	}
	seen, err := s.Duty.See(ctx, c, o)
	if err != nil {
		return jobs.ChainInfo{}, web.Problem(err)
	}
	info, err := s.Duty.Info(ctx, c, seen)
	if err != nil {
		return jobs.ChainInfo{}, web.Problem(err)
	}
	return *info, nil
}

// link returns a task of a chain.
func (s Resource) link(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	t, err := s.Tasks.Task(ctx, id)
	if err == nil && t.Chain == "" {
		seen, unread := s.Sees(ctx, id, "")
		err = reach.Alone(id, seen, unread)
	}
	return t, web.Problem(err)
}

type (
	chainInput struct {
		Chain string `path:"chain" doc:"id of the chain, or of one of its tasks"`
		Wait  string `query:"wait" doc:"answer later, when its state is another: seconds, or 30s; at most 1m"`
		Seen  string `query:"seen" doc:"state that the caller knows"`
	}
	chainOrder struct {
		web.Order
		Chain string `path:"chain"`
	}
	chainOutput  struct{ Body jobs.ChainInfo }
	chainsOutput struct{ Body api.ChainList }
)

// Routes registers the routes of the resource.
func (s Resource) Routes(api huma.API) {
	const chain = "/v1/chains/{chain}"
	huma.Register(api, web.Get("/v1/chains", "List chains that have not ended"), s.chains)
	huma.Register(api, web.Get(chain, "Show a chain, or wait for it to change"), s.chain)
	huma.Register(api, web.Post(chain+"/next", "Let a stopped chain go on"), s.nextChain)
	huma.Register(api, web.Post(chain+"/undo", "Take all of a chain back"), s.takeChainBack)
}

// chains answers GET /v1/chains.
func (s Resource) chains(ctx context.Context, _ *web.Nothing) (*chainsOutput, error) {
	ids, err := s.Care.Chains(ctx)
	if err != nil {
		return nil, web.Problem(err)
	}
	out := &chainsOutput{api.ChainList{Chains: []jobs.ChainInfo{}}}
	for _, id := range ids {
		c, o, result, err := s.Duty.Read(ctx, id)
		if errors.Is(err, queue.ErrNotFound) || err == nil && result != nil {
			continue
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		if !reach.SeesChain(ctx, c) {
			continue
		}
		seen, err := s.Duty.See(ctx, c, o)
		if err != nil {
			return nil, web.Problem(err)
		}
		out.Body.Chains = append(out.Body.Chains, *duties.InfoOf(c, seen))
	}
	return out, nil
}

// chain answers GET /v1/chains/{chain}.
func (s Resource) chain(ctx context.Context, in *chainInput) (*chainOutput, error) {
	id, err := jobs.ParseTaskID(in.Chain)
	wrong := web.Mistakes("path.chain", err)
	wait, err := web.ParseWait(in.Wait)
	if wrong = append(wrong, web.Mistakes("query.wait", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out := &chainOutput{}
	err = s.Until.Await(ctx, wait, func() (bool, error) {
		out.Body, err = s.Info(ctx, id, access.See)
		state := out.Body.State
		return state == jobs.ChainEnded || state == jobs.ChainStopped || string(state) != in.Seen, err
	})
	return out, err
}

// nextChain lets a chain go on that has stopped before anything was activated.
func (s Resource) nextChain(ctx context.Context, in *chainOrder) (*chainOutput, error) {
	return s.askChain(ctx, in, "let go on", func(i jobs.ChainInfo, note string) (
		jobs.ChainOrders, string) {
		if i.State != jobs.ChainStopped || i.Broken != "" {
			return jobs.ChainOrders{}, "it is " + string(i.State) + " and waits for nobody"
		}
		return jobs.ChainOrders{Next: note}, ""
	})
}

// takeChainBack takes all of a chain back, whatever its budget says.
func (s Resource) takeChainBack(ctx context.Context, in *chainOrder) (*chainOutput, error) {
	return s.askChain(ctx, in, "taken back", func(i jobs.ChainInfo, note string) (
		jobs.ChainOrders, string) {
		switch last := i.Tasks[len(i.Tasks)-1]; {
		case last.Phase != jobs.PhaseUndo:
			return jobs.ChainOrders{}, "nothing takes runbook " + i.Runbook + " back: it has no undo"
		case i.Broken != "":
			return jobs.ChainOrders{}, i.Broken
		}
		return jobs.ChainOrders{Undo: note}, ""
	})
}

func (s Resource) askChain(ctx context.Context, in *chainOrder, done string,
	may func(jobs.ChainInfo, string) (jobs.ChainOrders, string)) (*chainOutput, error) {
	id, err := jobs.ParseTaskID(in.Chain)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("path.chain", err))
	}
	info, err := s.Info(ctx, id, access.Order)
	if err != nil {
		return nil, err
	}
	g, wrong := in.Reasoned(done)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	ask, no := may(info, g.Note())
	if no != "" {
		return nil, huma.Error409Conflict(fmt.Sprintf("chain %s: %s", info.Chain, no))
	}
	fresh, err := s.Kept.AskChain(ctx, info.Chain, ask)
	if err != nil {
		return nil, web.Problem(err)
	}
	web.LogOrder(s.Log, "chain "+done, g, "chain", info.Chain, "already", !fresh)
	if info, err = s.Info(ctx, info.Chain, access.See); err != nil {
		return nil, err
	}
	return &chainOutput{info}, nil
}

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/server/duties"
)

// chainInfo is a chain, named by its own id or that of one of its tasks.
func (s *Server) chainInfo(ctx context.Context, id jobs.TaskID) (jobs.ChainInfo, error) {
	c, o, result, err := s.chainDuty.Read(ctx, id)
	if errors.Is(err, queue.ErrNotFound) {
		t, look := s.queue.Read.Tasks.Task(ctx, id)
		switch {
		case look != nil:
			return jobs.ChainInfo{}, problem(look)
		case t.Chain == "":
			return jobs.ChainInfo{}, huma.Error404NotFound(fmt.Sprintf("task %s is alone: no other "+
				"follows it", id))
		}
		c, o, result, err = s.chainDuty.Read(ctx, t.Chain)
	}
	if err != nil {
		return jobs.ChainInfo{}, problem(err)
	}
	if result != nil {
		return *result, nil
	}
	seen, err := s.chainDuty.See(ctx, c, o)
	if err != nil {
		return jobs.ChainInfo{}, problem(err)
	}
	info, err := s.chainDuty.Info(ctx, c, seen)
	if err != nil {
		return jobs.ChainInfo{}, problem(err)
	}
	return *info, nil
}

type (
	chainInput struct {
		Chain string `path:"chain" doc:"id of the chain, or of one of its tasks"`
		Wait  string `query:"wait" doc:"answer later, when its state is another: seconds, or 30s; at most 1m"`
		Seen  string `query:"seen" doc:"state that the caller knows"`
	}
	chainOrder struct {
		Order
		Chain string `path:"chain"`
	}
	chainOutput  struct{ Body jobs.ChainInfo }
	chainsOutput struct{ Body api.ChainList }
)

// registerChains names the routes about tasks that follow each other.
func (s *Server) registerChains(api huma.API) {
	const chain = "/v1/chains/{chain}"
	get := func(path, what string) huma.Operation { return operation(http.MethodGet, path, what) }
	post := func(path, what string) huma.Operation { return operation(http.MethodPost, path, what) }
	huma.Register(api, get("/v1/chains", "List chains that have not ended"), s.chains)
	huma.Register(api, get(chain, "Show a chain, or wait for it to change"), s.chain)
	huma.Register(api, post(chain+"/next", "Let a stopped chain go on"), s.nextChain)
	huma.Register(api, post(chain+"/undo", "Take all of a chain back"), s.takeChainBack)
}

// chains answers GET /v1/chains.
func (s *Server) chains(ctx context.Context, _ *nothing) (*chainsOutput, error) {
	ids, err := s.queue.Hub.ChainDuty.Chains(ctx)
	if err != nil {
		return nil, problem(err)
	}
	out := &chainsOutput{api.ChainList{Chains: []jobs.ChainInfo{}}}
	for _, id := range ids {
		c, o, result, err := s.chainDuty.Read(ctx, id)
		if errors.Is(err, queue.ErrNotFound) || err == nil && result != nil {
			continue
		}
		if err != nil {
			return nil, problem(err)
		}
		seen, err := s.chainDuty.See(ctx, c, o)
		if err != nil {
			return nil, problem(err)
		}
		out.Body.Chains = append(out.Body.Chains, *duties.InfoOf(c, seen))
	}
	return out, nil
}

// chain answers GET /v1/chains/{chain}.
func (s *Server) chain(ctx context.Context, in *chainInput) (*chainOutput, error) {
	id, err := jobs.ParseTaskID(in.Chain)
	wrong := mistakes("path.chain", err)
	wait, err := parseWait(in.Wait)
	if wrong = append(wrong, mistakes("query.wait", err)...); len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	out := &chainOutput{}
	err = s.await(ctx, wait, func() (bool, error) {
		out.Body, err = s.chainInfo(ctx, id)
		state := out.Body.State
		return state == jobs.ChainEnded || state == jobs.ChainStopped || string(state) != in.Seen, err
	})
	return out, err
}

// nextChain lets a chain go on that has stopped before anything was activated.
func (s *Server) nextChain(ctx context.Context, in *chainOrder) (*chainOutput, error) {
	return s.askChain(ctx, in, "let go on", func(i jobs.ChainInfo, note string) (
		jobs.ChainOrders, string) {
		if i.State != jobs.ChainStopped || i.Broken != "" {
			return jobs.ChainOrders{}, "it is " + string(i.State) + " and waits for nobody"
		}
		return jobs.ChainOrders{Next: note}, ""
	})
}

// takeChainBack takes all of a chain back, whatever its budget says.
func (s *Server) takeChainBack(ctx context.Context, in *chainOrder) (*chainOutput, error) {
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

func (s *Server) askChain(ctx context.Context, in *chainOrder, done string,
	may func(jobs.ChainInfo, string) (jobs.ChainOrders, string)) (*chainOutput, error) {
	g, wrong := in.reasoned(done)
	id, err := jobs.ParseTaskID(in.Chain)
	if wrong = append(wrong, mistakes("path.chain", err)...); len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	info, err := s.chainInfo(ctx, id)
	if err != nil {
		return nil, err
	}
	ask, no := may(info, g.note())
	if no != "" {
		return nil, huma.Error409Conflict(fmt.Sprintf("chain %s: %s", info.Chain, no))
	}
	fresh, err := s.queue.Hub.Chains.AskChain(ctx, info.Chain, ask)
	if err != nil {
		return nil, problem(err)
	}
	logOrder(s.log, "chain "+done, g, "chain", info.Chain, "already", !fresh)
	if info, err = s.chainInfo(ctx, info.Chain); err != nil {
		return nil, err
	}
	return &chainOutput{info}, nil
}

package approvals

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/audit"
	"muster/history/ledger"
	"muster/jobs"
	"muster/jobs/queue"
	"muster/jobs/queue/submit"
	"muster/server/scribe"
	"muster/server/stock"
	"muster/server/web"
	"muster/trust"
)

type (
	listInput  struct{ web.Asked }
	listOutput struct{ Body api.HeldList }
	showInput  struct {
		web.Asked
		Task string `path:"task"`
	}
	showOutput   struct{ Body api.HeldDetail }
	approveInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Task string `path:"task"`
		Body api.EndorseRequest
	}
	approveOutput struct{ Body api.Endorsed }
	refuseInput   struct {
		web.Asked
		User   string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Task   string `path:"task"`
		Reason string `query:"reason" maxLength:"500" doc:"for people who read it later"`
	}
	refuseOutput struct{ Body jobs.Cancel }
)

// Holds knows the tasks that wait for signatures.
type Holds interface {
	HeldTasks(ctx context.Context, now time.Time) ([]jobs.TaskID, error)
	IsHeld(ctx context.Context, id jobs.TaskID) (bool, error)
	CommitHeld(ctx context.Context, t jobs.Task) error
	DropHeld(ctx context.Context, id jobs.TaskID) error
}

// Orders keeps the signed orders of tasks, zone by zone.
type Orders interface {
	OrderIn(ctx context.Context, zone string, id jobs.TaskID) (submit.Order, error)
	SharesIn(ctx context.Context, zone string, id jobs.TaskID, n int) ([]string, error)
	Endorse(ctx context.Context, zone string, o submit.Order,
		change func(signatures []string) ([]string, error)) error
}

// Tasks reads tasks. Its errors wrap queue.ErrNotFound if there is no such task.
type Tasks interface {
	Task(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error)
}

// Cancels ends the jobs of a task.
type Cancels interface {
	Cancel(ctx context.Context, id jobs.TaskID, note string) (jobs.Cancel, error)
}

// Routes shows held tasks, takes signatures for them, and refuses them.
type Routes struct {
	Holds    Holds
	Orders   Orders
	Tasks    Tasks
	Cancels  Cancels
	Stock    *stock.Store
	Trust    func() (*trust.Rules, error) // whom the server trusts; nil: nobody has said so
	Seen     func(context.Context, []jobs.TaskInfo) ([]jobs.TaskInfo, error)
	MayBegin func(context.Context) error // refuses work that could not be done as was agreed
	Audit    *scribe.Scribe              // nil: none
	Entries  *ledger.Ledger              // of the audit log; nil: there is none
	Glass    Glass
	Last     Lasts
	Log      hclog.Logger
	Now      func() time.Time
}

// Routes registers the routes of the resource.
func (s Routes) Routes(api huma.API) {
	huma.Register(api, web.Get("/v1/approvals", "List the tasks that wait for signatures"), s.list)
	huma.Register(api, web.Get("/v1/approvals/{task}", "Show a task that waits for signatures"),
		s.show)
	huma.Register(api, web.Post("/v1/approvals/{task}", "Sign the order of a task"), s.approve)
	huma.Register(api, web.Delete("/v1/approvals/{task}", "Refuse a task that waits for signatures"),
		s.refuse)
	huma.Register(api, web.Delete("/v1/approvals/{task}/signature",
		"Take back one's signature, or the task that one has ordered"), s.withdraw)
}

// list answers GET /v1/approvals.
func (s Routes) list(ctx context.Context, _ *listInput) (*listOutput, error) {
	ids, err := s.Holds.HeldTasks(ctx, s.Now())
	if err != nil {
		return nil, web.Problem(err)
	}
	var infos []jobs.TaskInfo
	for _, id := range ids {
		t, err := s.Tasks.Task(ctx, id)
		switch {
		case errors.Is(err, queue.ErrNotFound):
		case err != nil:
			return nil, web.Problem(err)
		case waits(t):
			infos = append(infos, t)
		}
	}
	if infos, err = s.Seen(ctx, infos); err != nil {
		return nil, web.Problem(err)
	}
	out := &listOutput{api.HeldList{Approvals: []api.HeldTask{}}}
	for _, t := range infos {
		h, err := s.read(ctx, t)
		if errors.Is(err, queue.ErrNotFound) || errors.Is(err, trust.ErrOrder) {
			continue // it has expired, or somebody has changed it in Redis
		}
		if err != nil {
			return nil, web.Problem(err)
		}
		out.Body.Approvals = append(out.Body.Approvals, s.described(h))
	}
	return out, nil
}

// show answers GET /v1/approvals/{task}.
func (s Routes) show(ctx context.Context, in *showInput) (*showOutput, error) {
	h, err := s.find(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	if err := s.readHosts(ctx, h); err != nil {
		return nil, err
	}
	d := s.detailed(h)
	if d.Last, err = s.last(ctx, h); err != nil {
		return nil, web.Problem(err)
	}
	return &showOutput{d}, nil
}

// approve answers POST /v1/approvals/{task}.
func (s Routes) approve(ctx context.Context, in *approveInput) (*approveOutput, error) {
	name, _, err := web.Operator(in.Caller(), in.Body.As, in.User)
	if err != nil {
		return nil, web.Refusal(web.Mistakes("body.as", err))
	}
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	h, err := s.find(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	if err := s.mayApprove(ctx, h, name); err != nil {
		return nil, err
	}
	if err := s.mayBreak(ctx, h, name); err != nil {
		return nil, err
	}
	if hash := trust.HashOf(h.order.Bytes); in.Body.Hash != hash {
		return nil, huma.Error409Conflict(fmt.Sprintf("you have signed %s, and the order of task %s is "+
			"%s: the plan has changed, or it is another one; look at it again with `muster approvals "+
			"show %s`", web.Clip(in.Body.Hash), h.info.Task, hash, h.info.Task))
	}
	vote, err := voteOf(rules.At(s.Now()), h, in.Body, name)
	if err != nil {
		return nil, err
	}
	if err := s.examine(h, rules); err != nil {
		return nil, err
	}
	if err := s.MayBegin(ctx); err != nil {
		return nil, err
	}
	if err := s.breakGlass(ctx, h, rules, vote); err != nil {
		return nil, err
	}
	for _, zone := range h.info.Zones {
		if err := s.Orders.Endorse(ctx, zone, h.order, vote.AddTo); err != nil {
			return nil, web.Problem(err)
		}
	}
	out, err := s.commitIfMet(ctx, h, rules)
	if err != nil {
		return nil, err
	}
	s.Log.Info("order signed", "task", h.info.Task, "operator", name, "key", vote.Key, "missing",
		out.Missing, "committed", out.Committed)
	return &approveOutput{out}, nil
}

// refuse answers DELETE /v1/approvals/{task}.
func (s Routes) refuse(ctx context.Context, in *refuseInput) (*refuseOutput, error) {
	g, wrong := web.GiverOf(api.OrderRequest{Reason: in.Reason}, "refused", in.Caller(), in.User)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	h, err := s.find(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	if g.Name == h.info.Operator {
		g.Done = "withdrawn"
	} else if err := s.mayRefuse(ctx, h, g); err != nil {
		return nil, err
	}
	did, err := s.drop(ctx, h, g)
	if err != nil {
		return nil, err
	}
	return &refuseOutput{did}, nil
}

// drop ends a task that waits for signatures.
func (s Routes) drop(ctx context.Context, h *held, g web.Giver) (did jobs.Cancel, err error) {
	id := h.info.Task
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: "approval.refuse", Object: "task/" + string(id),
		Reason: g.Reason, Stops: true})
	if err != nil {
		return did, err
	}
	did, err = s.Cancels.Cancel(ctx, id, g.Note())
	if err == nil {
		err = s.Holds.DropHeld(ctx, id)
	}
	if err != nil {
		end(audit.Failed)
		return did, web.Problem(err)
	}
	end(audit.Done)
	web.LogOrder(s.Log, "held task "+g.Done, g, "task", id)
	return did, nil
}

// mayApprove returns the answer for somebody who may not sign a task, and reads its hosts. It takes
// the right to run it to sign the own task, and the right to approve for those of others. The name
// of the one who ordered is not invented: examine takes no order that a server has not signed.
func (s Routes) mayApprove(ctx context.Context, h *held, name string) error {
	if err := s.readHosts(ctx, h); err != nil {
		return err
	}
	act := access.Act{Verb: access.Approve, Runbook: h.spec.Runbook}
	if name == h.spec.Operator {
		act.Verb = access.Run
	}
	return web.ViewOf(ctx).Refuse(act, h.names())
}

// mayRefuse returns the answer for somebody who may not refuse the task of another, or says no
// reason.
func (s Routes) mayRefuse(ctx context.Context, h *held, g web.Giver) error {
	act := access.Act{Verb: access.Approve, Runbook: h.info.Runbook}
	view := web.ViewOf(ctx)
	if !view.May(act) {
		if err := s.readHosts(ctx, h); err != nil {
			return err
		}
		if err := view.Refuse(act, h.names()); err != nil {
			return err
		}
	}
	if g.Reason == "" {
		return web.Refusal([]error{web.Mistake("query.reason",
			"a reason is needed: say why, for %s, who ordered it", h.info.Operator)})
	}
	return nil
}

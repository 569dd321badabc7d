package approvals

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/audit"
	"muster/server/scribe"
	"muster/server/web"
	"muster/trust"
)

type (
	withdrawInput struct {
		web.Asked
		User   string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Task   string `path:"task"`
		Reason string `query:"reason" maxLength:"500" doc:"for people who read it later"`
	}
	withdrawOutput struct{ Body api.Withdrawn }
)

// withdraw answers DELETE /v1/approvals/{task}/signature: people take their signatures back, and
// the one who ordered the task takes back the task.
func (s Routes) withdraw(ctx context.Context, in *withdrawInput) (*withdrawOutput, error) {
	g, wrong := web.GiverOf(api.OrderRequest{Reason: in.Reason}, "withdrawn", in.Caller(), in.User)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	h, err := s.find(ctx, in.Task)
	if err != nil {
		return nil, err
	}
	out := &withdrawOutput{api.Withdrawn{Task: h.info.Task, Signed: []string{}}}
	if g.Name == h.spec.Operator {
		did, err := s.drop(ctx, h, g)
		out.Body.Ended = did.Ended
		out.Body.Whole = true
		return out, err
	}
	rules, err := s.rules()
	if err != nil {
		return nil, err
	}
	by := rules.At(s.Now())
	if len(by.Without(h.order.Bytes, h.order.Signatures, g.Name)) == len(h.order.Signatures) {
		return nil, huma.Error404NotFound(fmt.Sprintf("you are %s, and have not signed task %s", g.Name,
			h.info.Task))
	}
	end, err := s.Audit.Says(ctx, scribe.Deed{Verb: "approval.withdraw",
		Object: "task/" + string(h.info.Task), Reason: g.Reason, Stops: true})
	if err != nil {
		return nil, err
	}
	for _, zone := range h.info.Zones {
		err = errors.Join(err, s.Orders.Endorse(ctx, zone, h.order,
			func(signatures []string) ([]string, error) {
				h.order.Signatures = by.Without(h.order.Bytes, signatures, g.Name)
				return h.order.Signatures, nil
			}))
	}
	if err != nil {
		end(audit.Failed)
		return nil, web.Problem(err)
	}
	end(audit.Done)
	s.Log.Info("signature withdrawn", "task", h.info.Task, "operator", g.Name, "reason", g.Reason)
	out.Body.Signed = by.SignedBy(h.order.Bytes, h.order.Signatures)
	if err := s.readHosts(ctx, h); err != nil {
		return nil, err
	}
	out.Body.Missing = s.missing(h, rules)
	return out, nil
}

// missing returns the number of people who must still sign; nil: nobody can say.
func (s Routes) missing(h *held, rules *trust.Rules) *int {
	standing, err := trust.Examine(h.order.Bytes, h.order.Signatures, rules.At(s.Now()))
	if err != nil {
		return nil
	}
	n, err := rules.Policy.Short(standing, s.deeds(h, rules))
	if err != nil {
		return nil
	}
	return &n
}

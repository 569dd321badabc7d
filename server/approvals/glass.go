package approvals

import (
	"context"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"muster/access"
	"muster/jobs"
	"muster/jobs/queue/keys"
	"muster/server/scribe"
	"muster/server/web"
	"muster/trust"
)

// Alerts tells people at once.
type Alerts interface {
	Alert(ctx context.Context, zone string, a jobs.Alert) error
}

// Glass tells people that somebody breaks the glass.
type Glass struct {
	Alerts Alerts
	Count  func() // in the metrics
}

// mayBreak returns the answer for a signature over an order whose operator breaks the glass: only
// the operator signs it, with the right to do so.
func (s Routes) mayBreak(ctx context.Context, h *held, name string) error {
	if h.parsed.BreakGlass == "" {
		return nil
	}
	if name != h.spec.Operator {
		return huma.Error409Conflict(fmt.Sprintf("%s breaks the glass with task %s, so only %s signs "+
			"it; submit the work anew, without that, for others to sign", h.spec.Operator, h.info.Task,
			h.spec.Operator))
	}
	return web.ViewOf(ctx).Refuse(access.Act{Verb: access.BreakGlass, Runbook: h.spec.Runbook},
		h.names())
}

// breakGlass writes down and tells people that somebody runs work alone, before that takes effect.
// It refuses what the policy does not allow. If the policy wants no more people it is written down
// as well: the order says that the glass was broken.
func (s Routes) breakGlass(ctx context.Context, h *held, rules *trust.Rules,
	vote trust.Vote) error {
	if h.parsed.BreakGlass == "" {
		return nil
	}
	if s.Audit == nil {
		return huma.Error409Conflict("this server keeps no audit log, so nobody can break the glass " +
			"here: it must be written down before")
	}
	signatures, err := vote.AddTo(h.order.Signatures)
	if err != nil {
		return web.Problem(err)
	}
	standing, err := trust.Examine(h.order.Bytes, signatures, rules.At(s.Now()))
	if err != nil {
		return web.Problem(err)
	}
	missing, err := rules.Policy.Short(standing, s.deeds(h, rules))
	if err != nil {
		return web.Problem(err)
	}
	if missing > 0 {
		return huma.Error403Forbidden(fmt.Sprintf("the policy does not let %s break the glass for all "+
			"hosts of task %s: its rule for them lists who may, in break_glass", h.spec.Operator,
			h.info.Task))
	}
	_, err = s.Audit.Says(ctx, scribe.Deed{Verb: scribe.GlassBroken,
		Object: "task/" + string(h.info.Task), Reason: h.parsed.BreakGlass})
	if err != nil {
		return err
	}
	s.Glass.Count()
	s.Log.Error("the glass was broken: one person runs what more must sign", "task", h.info.Task,
		"operator", h.spec.Operator, "runbook", h.spec.Runbook, "hosts", len(h.hosts), "reason",
		h.parsed.BreakGlass, "help", "muster approvals reviews")
	err = s.Glass.Alerts.Alert(ctx, keys.HubZone, jobs.Alert{Event: "glass-broken",
		Object: string(h.info.Task), Detail: map[string]any{"operator": h.spec.Operator,
			"runbook": h.spec.Runbook, "hosts": len(h.hosts), "note": h.parsed.BreakGlass}})
	if err != nil {
		return web.Away(fmt.Sprintf("nobody could be told that the glass is broken, so the task waits: "+
			"%v", err))
	}
	return nil
}

package approvals

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/server/web"
	"muster/trust"
)

// expiryMargin is the time before the end of a held task in which no signature is taken: the commit
// must find the parts of all zones, and clocks differ.
const expiryMargin = time.Minute

// rules returns whom the server trusts, or the answer that says what to configure.
func (s Routes) rules() (*trust.Rules, error) {
	if s.Trust == nil {
		return nil, huma.Error409Conflict("this server does not know whose signatures count: copy the " +
			"folder trust of the nodes to it, name it by trust.dir in muster.yaml, and start it again; " +
			"`muster init` makes such a folder")
	}
	rules, err := s.Trust()
	if err != nil {
		return nil, web.Away("this server cannot read whom it trusts: " + err.Error())
	}
	return rules, nil
}

// voteOf checks the signature of a caller, or returns the answer that refuses it.
func voteOf(by trust.Signers, h *held, asked api.EndorseRequest, caller string) (trust.Vote,
	error) {
	text, at := asked.Signature, "body.signature"
	if p := asked.Passkey; p != nil {
		at = "body.passkey"
		if text != "" {
			return trust.Vote{}, web.Refusal([]error{web.Mistake(at,
				"there is a signature, too: want one of them")})
		}
		var err error
		text, err = by.FromPasskey(h.order.Bytes, caller, sshsig.Assertion{Client: p.Client,
			Authenticator: p.Authenticator, Signature: p.Signature})
		if err != nil {
			return trust.Vote{}, web.Refusal([]error{web.Mistake(at, "it does not count: %v", err)})
		}
	}
	vote, err := by.Vote(h.order.Bytes, text)
	if err != nil {
		return vote, web.Refusal([]error{web.Mistake(at, "it does not count: %v", err)})
	}
	if !slices.Contains(vote.Names, caller) {
		return vote, huma.Error403Forbidden(fmt.Sprintf("the key %s is of %s, and you are %s: sign with "+
			"your own key; its line in allowed_signers must have your name", vote.Key,
			strings.Join(vote.Names, ", "), caller))
	}
	return vote, nil
}

// deeds returns what would be done under the order, on each host as the inventory in force has it.
func (s Routes) deeds(h *held, rules *trust.Rules) []trust.Deed {
	now := s.Now()
	if now.Before(h.parsed.NotBefore) {
		now = h.parsed.NotBefore
	}
	inventory := s.Stock.Hosts()
	list := make([]trust.Deed, 0, len(h.hosts))
	for _, one := range h.hosts {
		known, _ := inventory.Host(one.name)
		list = append(list, trust.Deed{Installation: rules.Keys.Installation(),
			Job: jobs.NewID(h.info.Task, one.name), Zone: one.zone, Host: known, Record: one.record,
			Now: now})
	}
	return list
}

// examine returns the answer for an order that no node would follow, whoever signs it, or that no
// server has made.
func (s Routes) examine(h *held, rules *trust.Rules) error {
	anew := func(why error) error {
		return huma.Error409Conflict(fmt.Sprintf("the order of task %s cannot be carried out any more: "+
			"%v; refuse the task, and submit it anew", h.info.Task, why))
	}
	if s.Now().After(h.until().Add(-expiryMargin)) {
		return anew(errors.New("it has waited for a day"))
	}
	standing, err := trust.Examine(h.order.Bytes, h.order.Signatures, rules.At(s.Now()))
	if err == nil && !standing.Server {
		err = errors.New("no server has signed it")
	}
	if err != nil {
		return anew(err)
	}
	for _, one := range h.hosts {
		if _, there := s.Stock.Hosts().Host(one.name); !there {
			return anew(fmt.Errorf("host %s has left the inventory", one.name))
		}
	}
	if _, err := rules.Policy.Short(standing, s.deeds(h, rules)); err != nil {
		return anew(err)
	}
	return nil
}

// commitIfMet commits a task if in all zones enough people have signed it.
func (s Routes) commitIfMet(ctx context.Context, h *held, rules *trust.Rules) (api.Endorsed,
	error) {
	by := rules.At(s.Now())
	out := api.Endorsed{Task: h.info.Task, Hash: trust.HashOf(h.order.Bytes)}
	back, err := takenBack(ctx, s.Entries, s.Audit, h.info.Task)
	if err != nil {
		return out, err
	}
	deeds := s.deeds(h, rules)
	for _, zone := range h.info.Zones {
		o, err := s.Orders.OrderIn(ctx, zone, h.info.Task)
		if err != nil {
			return out, web.Problem(err)
		}
		for _, name := range back {
			o.Signatures = by.Without(h.order.Bytes, o.Signatures, name)
		}
		standing, err := trust.Examine(h.order.Bytes, o.Signatures, by)
		if err != nil {
			return out, web.Problem(err)
		}
		n, err := rules.Policy.Short(standing, inZone(deeds, zone))
		if err != nil {
			return out, web.Problem(err)
		}
		out.Missing = max(out.Missing, n)
		out.Signed = by.SignedBy(h.order.Bytes, o.Signatures)
	}
	if out.Missing > 0 {
		return out, nil
	}
	if err := s.Holds.CommitHeld(ctx, jobs.Task{ID: h.info.Task, Spec: h.spec}); err != nil {
		return out, web.Away(fmt.Sprintf("%v; your signature is kept: approve it again, and it runs",
			err))
	}
	out.Committed = true
	return out, nil
}

func inZone(deeds []trust.Deed, zone string) []trust.Deed {
	return slices.DeleteFunc(slices.Clone(deeds), func(d trust.Deed) bool { return d.Zone != zone })
}

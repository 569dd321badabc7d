package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/danielgtaylor/huma/v2"

	"muster/access"
	"muster/internal/manifest"
	"muster/internal/wording"
	"muster/notify"
	"muster/server/fault"
	"muster/server/web"
	"muster/triggers"
	"muster/windows"
)

// work returns the runbooks that an entry runs, and the selector of its hosts; ok is false if it
// runs none.
func work(e manifest.Entry) (runbooks []string, on string, ok bool) {
	var rollout *windows.RolloutRequest
	switch x := e.Value.(type) {
	case windows.Entry:
		runbooks, on, rollout = []string{x.Runbook}, x.On, x.Rollout
	case triggers.Trigger:
		runbooks, on, rollout = []string{x.Work.Runbook}, x.Work.Aim.On, x.Work.Rollout
	default:
		return nil, "", false
	}
	if rollout != nil && rollout.Health != "" {
		runbooks = append(runbooks, rollout.Health)
	}
	return runbooks, on, true
}

// Only returns why an entry may concern others than a customer; nil: it concerns nobody else,
// whatever hosts there will be.
func Only(e manifest.Entry, customer string) error {
	if customer == "" || e.Customer != customer {
		return fmt.Errorf("it does not belong to customer %s", customer)
	}
	if _, on, runs := work(e); runs {
		if !access.PicksOnly(on, customer) {
			return fmt.Errorf("on: %s may pick hosts of others than customer %s: begin "+
				"it with customer=%s, as in '{customer=%s}&(fw1,fw2)'", wording.Clip(on), customer, customer,
				customer)
		}
		return nil
	}
	ok := false
	switch x := e.Value.(type) {
	case windows.Window:
		ok = x.For == windows.Scope{Level: windows.Customer, Name: customer}
	case windows.Freeze:
		ok = x.For == windows.Scope{Level: windows.Customer, Name: customer}
	case notify.Rule:
		ok = true // it belongs to the customer because it tells of nobody else
	}
	if !ok {
		return fmt.Errorf("it is not for the hosts of customer %s alone", customer)
	}
	return nil
}

// mayRun returns why a caller may not apply an entry that runs something; nil: the caller may. Who
// may run it for a customer alone may apply what concerns nobody else.
func mayRun(ctx context.Context, e manifest.Entry) error {
	v, act := web.ViewOf(ctx), access.Act{Verb: access.Run}
	if v.May(act) {
		return nil
	}
	runbooks, _, runs := work(e)
	verbs := []access.Verb{access.Run}
	if supersedes(e) {
		verbs = append(verbs, access.Order) // it ends work of others
	}
	for _, name := range runbooks {
		for _, verb := range verbs {
			runs = runs && v.MayCustomer(access.Act{Verb: verb, Runbook: name}, e.Customer)
		}
	}
	if _, trigger := e.Value.(triggers.Trigger); trigger {
		runs = runs && v.SeesCustomer(e.Customer) // it reads all events of the customer
	}
	if !runs || e.Customer == "" {
		return v.RefuseHouse(act)
	}
	return Only(e, e.Customer)
}

// supersedes reports whether an entry lets its tasks take the place of older ones.
func supersedes(e manifest.Entry) bool {
	switch x := e.Value.(type) {
	case windows.Entry:
		return x.Supersedes != ""
	case triggers.Trigger:
		return x.Work.Supersedes != ""
	}
	return false
}

// refusal returns the answer to a caller who may not apply some entries; nil: all may be applied.
func refusal(wrong []error) error {
	if len(wrong) == 0 {
		return nil
	}
	shown := wrong[:min(len(wrong), refusedMax)]
	words := fault.Words(shown)
	if more := len(wrong) - len(shown); more > 0 {
		words += fmt.Sprintf("; and %d more", more)
	}
	return huma.Error403Forbidden(words)
}

// refusedMax bounds the entries that a refusal names.
const refusedMax = 20

// refused names an entry with the reason why a caller may not change it.
func refused(e manifest.Entry, why error) error {
	words := why.Error()
	if known := (*huma.ErrorModel)(nil); errors.As(why, &known) {
		words = known.Detail
	}
	if e.Place == "" {
		return fmt.Errorf("%s %s: %s", e.Kind, e.Name, words)
	}
	return fmt.Errorf("%s: %s %s: %s", e.Place, e.Kind, e.Name, words)
}

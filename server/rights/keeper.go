package rights

import (
	"sync"

	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/fleet"
	"muster/server/web"
)

// Needs has all that a Keeper works with.
type Needs struct {
	// Policy reads the policy; the same pointer means that it has not changed. Its error has every
	// mistake.
	Policy func() (*access.Policy, error)
	// Inventory returns the inventory in force as its sources have it; nil: there is none.
	Inventory func() *fleet.Inventory
	// Changed is told of another policy before it is in force.
	Changed func()
	Log     hclog.Logger
}

// Keeper keeps the policy in force. A policy with a mistake is refused whole: the earlier one
// stays.
type Keeper struct {
	needs Needs

	mu        sync.Mutex
	policy    *access.Policy
	inventory *fleet.Inventory
	rights    *access.Rights
	complaint string
}

// NewKeeper reads the policy once. The error has every mistake in it.
func NewKeeper(n Needs) (*Keeper, error) {
	p, err := n.Policy()
	if err != nil {
		return nil, err
	}
	k := &Keeper{needs: n, policy: p}
	k.tell(p)
	return k, nil
}

// Rights returns the rights that are in force now: it notices a changed policy and inventory.
func (k *Keeper) Rights() *access.Rights {
	p, err := k.needs.Policy()
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
		if text := err.Error(); text != k.complaint {
			k.complaint = text
			k.needs.Log.Error("access: the old policy stays", "error", text)
		}
	case p != k.policy:
		k.needs.Changed()
		k.policy, k.rights, k.complaint = p, nil, ""
		k.tell(p)
	default:
		k.complaint = ""
	}
	inv := k.needs.Inventory()
	if k.rights == nil || inv != k.inventory {
		k.inventory = inv
		if inv == nil {
			inv = &fleet.Inventory{}
		}
		k.rights = k.policy.Over(inv)
		for _, d := range k.rights.Doubts() {
			k.needs.Log.Warn("access: " + d.Error())
		}
	}
	return k.rights
}

// Anything reports whether a caller may do anything at all now.
func (k *Keeper) Anything(c web.Caller) bool {
	return len(web.NewView(k.Rights(), whoOf(c)).Verbs()) > 0
}

// tell logs what is in force.
func (k *Keeper) tell(p *access.Policy) {
	k.needs.Log.Info("access: a policy is in force", "grants", p.Grants(), "admins", p.Admins())
	for _, d := range p.Doubts() {
		k.needs.Log.Warn("access: " + d.Error())
	}
}

// Complaint says why a changed policy is not in force; empty: it is.
func (k *Keeper) Complaint() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complaint
}

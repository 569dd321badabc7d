package web

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"muster/access"
)

// A View is the part of the house that a caller sees, and what the caller may do there. The nil
// View is that of the server itself, which sees and may do everything.
type View struct {
	rights *access.Rights
	who    access.Who
	seen   access.Hosts
}

// NewView returns the view of a caller.
func NewView(r *access.Rights, who access.Who) *View {
	return &View{r, who, r.Hosts(who, access.Act{Verb: access.See})}
}

type viewKey struct{}

// Sight holds the view of a request. The gate replaces it if rights change while the request lasts.
type Sight = atomic.Pointer[View]

// WithView returns a context in which the house is seen by a caller, as long as the caller sees it
// so: whoever puts another view into the Sight changes what the request shows from then on.
func WithView(ctx huma.Context, v *View) (huma.Context, *Sight) {
	s := &Sight{}
	s.Store(v)
	return huma.WithValue(ctx, viewKey{}, s), s
}

// WithSight returns a context in which the house is seen as by somebody for whom no request came:
// a standing order works with the rights of its own principal.
func WithSight(ctx context.Context, v *View) context.Context {
	s := &Sight{}
	s.Store(v)
	return context.WithValue(ctx, viewKey{}, s)
}

// AsServer returns a context with the view of the server, which sees everything. Use it to learn
// which hosts a thing concerns, and hold the answer against the view of the caller.
func AsServer(ctx context.Context) context.Context {
	return context.WithValue(ctx, viewKey{}, (*Sight)(nil))
}

// ViewOf returns the view of a context now; nil: the server asks for itself.
func ViewOf(ctx context.Context) *View {
	s, _ := ctx.Value(viewKey{}).(*Sight)
	if s == nil {
		return nil
	}
	return s.Load()
}

// Whole reports whether no host is hidden.
func (v *View) Whole() bool { return v == nil || v.seen.All() }

// noRunbook is a name that no runbook has, so that only grants for all runbooks fit it.
const noRunbook = "\x00"

// All reports whether nothing at all is hidden: neither a host nor the work of a runbook.
func (v *View) All() bool {
	return v == nil || v.rights.Allows(v.who, access.Act{Verb: access.See, Runbook: noRunbook}, "")
}

// RefuseAll returns the answer for a caller from whom something is hidden; nil: nothing is.
func (v *View) RefuseAll() error {
	if v.All() {
		return nil
	}
	if err := v.RefuseHouse(access.Act{Verb: access.See}); err != nil {
		return err
	}
	return huma.Error403Forbidden(v.who.Principal + " may see the work of some runbooks only, and " +
		"this shows that of all; who may grant it: " + strings.Join(v.rights.Policy().Admins(), ", "))
}

// Reaches returns the parts of the house whose work is seen. Do not ask the view of the server.
func (v *View) Reaches() []access.Reach { return v.rights.Reaches(v.who, access.See) }

// SeesWork reports whether the work of a runbook on all these hosts is seen.
func (v *View) SeesWork(runbook string, hosts ...string) bool {
	return v.All() || len(hosts) > 0 &&
		v.May(access.Act{Verb: access.See, Runbook: runbook}, hosts...)
}

// SeesAll reports whether all work on all these hosts is seen.
func (v *View) SeesAll(hosts ...string) bool { return v.SeesWork(noRunbook, hosts...) }

// Sees reports whether a host is seen.
func (v *View) Sees(host string) bool { return v == nil || v.seen.Has(host) }

// Same reports whether two views show the same hosts for sure: those of one caller, under one
// policy and one inventory.
func (v *View) Same(other *View) bool {
	return v != nil && other != nil && v.rights == other.rights &&
		v.who.Principal == other.who.Principal && v.who.Scope == other.who.Scope &&
		slices.Equal(v.who.Groups, other.who.Groups)
}

// May reports whether an act on all these hosts is allowed; without hosts: on the whole house.
func (v *View) May(act access.Act, hosts ...string) bool {
	if v == nil {
		return true
	}
	if len(hosts) == 0 {
		return v.rights.Allows(v.who, act, "")
	}
	return len(v.rights.Refused(v.who, act, hosts)) == 0
}

// MayCustomer reports whether an act is allowed on all hosts that a customer has or will have.
func (v *View) MayCustomer(act access.Act, customer string) bool {
	return v == nil || v.rights.AllowsCustomer(v.who, act, customer)
}

// SeesCustomer reports whether all work on all hosts is seen that a customer has or will have.
func (v *View) SeesCustomer(customer string) bool {
	return v.MayCustomer(access.Act{Verb: access.See, Runbook: noRunbook}, customer)
}

// Runbook reports whether a runbook is seen: the caller may do something with it on some host.
func (v *View) Runbook(name string) bool {
	if v == nil {
		return true
	}
	return slices.ContainsFunc(v.rights.Policy().Verbs(v.who), func(verb access.Verb) bool {
		may := v.rights.Hosts(v.who, access.Act{Verb: verb, Runbook: name})
		return may.All() || may.Len() > 0
	})
}

// Allowed returns those of the hosts on which an act is allowed, in their order.
func (v *View) Allowed(act access.Act, hosts []string) []string {
	if v == nil {
		return hosts
	}
	may := v.rights.Hosts(v.who, act)
	return slices.DeleteFunc(slices.Clone(hosts), func(name string) bool { return !may.Has(name) })
}

// Refuse returns the answer that refuses an act on some of these hosts, which the caller sees; nil:
// it is allowed on all. Nothing is done in part.
func (v *View) Refuse(act access.Act, hosts []string) error {
	if v == nil {
		return nil
	}
	refused := v.rights.Refused(v.who, act, hosts)
	if len(refused) == 0 {
		return nil
	}
	why := v.rights.Explain(v.who, act, refused[0])
	if len(hosts) == 1 {
		return huma.Error403Forbidden(why.Words)
	}
	err := access.Refusal(v.who, act, refused, len(hosts))
	return huma.Error403Forbidden(err.Error() + "; " + why.Words)
}

// RefuseHouse returns the answer that refuses an act on the whole house; nil: it is allowed.
func (v *View) RefuseHouse(act access.Act) error {
	if v == nil {
		return nil
	}
	why := v.rights.Explain(v.who, act, "")
	if why.Allowed {
		return nil
	}
	return huma.Error403Forbidden(why.Words)
}

// Verbs returns the verbs that the caller has at all.
func (v *View) Verbs() []access.Verb {
	if v == nil {
		return access.Verbs()
	}
	return v.rights.Policy().Verbs(v.who)
}

// RefuseVerb returns the answer for a caller who has a verb nowhere; nil: somewhere.
func (v *View) RefuseVerb(verb access.Verb) error {
	if slices.Contains(v.Verbs(), verb) {
		return nil
	}
	return v.RefuseHouse(access.Act{Verb: verb})
}

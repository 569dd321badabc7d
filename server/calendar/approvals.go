package calendar

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/hashicorp/go-hclog"

	"muster/access"
	"muster/api"
	"muster/jobs"
	"muster/server/stock"
	"muster/server/web"
	"muster/windows"
)

type (
	approveInput struct {
		web.Asked
		User   string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Window string `path:"window"`
		Body   api.ApproveRequest
	}
	approveOutput  struct{ Body api.Approved }
	withdrawnInput struct {
		web.Order
		Approval string `path:"approval"`
	}
	freezeInput struct {
		web.Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.FreezeRequest
	}
	liftFreezeInput struct {
		web.Order
		Freeze string `path:"freeze"`
	}
)

// Approvals answers orders about approvals and freezes.
type Approvals struct {
	Calendar *Calendar
	Stock    *stock.Store
	Log      hclog.Logger
	Now      func() time.Time
	Whole    func(context.Context) error // see web.WhileAgreed
}

// Routes registers the routes of approvals and freezes.
func (s Approvals) Routes(api huma.API) {
	huma.Register(api, web.Post("/v1/windows/{window}/approve", "Approve occurrences of a window"),
		web.WhileAgreed(s.Whole, s.approve))
	huma.Register(api, web.Post("/v1/approvals/{approval}/withdraw", "Take an approval back"),
		web.WhileAgreed(s.Whole, s.withdraw))
	huma.Register(api, web.Post("/v1/freezes", "Freeze: let no work begin"), web.WhileAgreed(s.Whole,
		s.freeze))
	huma.Register(api, web.Post("/v1/freezes/{freeze}/lift", "Lift a freeze"),
		web.WhileAgreed(s.Whole, s.liftFreeze))
}

// approve answers POST /v1/windows/{window}/approve.
func (s Approvals) approve(ctx context.Context, in *approveInput) (*approveOutput, error) {
	b := in.Body
	g, wrong := web.GiverOf(b.OrderRequest, "approved", in.Caller(), in.User)
	if len(b.Starts) > 0 == (!b.From.IsZero() || !b.Until.IsZero()) {
		wrong = append(wrong, web.Mistake("body",
			"give a span (from, until) or the starts of occurrences"))
	}
	if len(b.Starts) == 0 && !b.Until.After(b.From.Time) {
		wrong = append(wrong, web.Mistake("body.until", "it is not after from"))
	}
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	a := windows.Approval{ID: strings.ToLower(rand.Text()[:8]), Window: in.Window,
		By: g.Name, For: b.For,
		At: s.Now().UTC().Truncate(time.Second), Ref: b.Reference, From: b.From.Time, Until: b.Until.Time}
	for _, t := range b.Starts {
		a.Starts = append(a.Starts, t.Time)
	}
	covers := 0
	how := manner{check: b.Check}
	out, err := s.Calendar.agree(ctx, how, func(t windows.Timetable, book *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		w, ok := book.Window(in.Window)
		if !ok {
			return t, jobs.Alert{}, noWindow(in.Window)
		}
		may := deed{access.Approve, w.For, cmp.Or(w.Owner(), b.Customer), noWindow(in.Window)}
		if err := may.refuse(ctx, s.Stock); err != nil {
			return t, jobs.Alert{}, err
		}
		var err error
		a.Customer, err = agreeing(s.Stock, w, b.Customer, web.ViewOf(ctx).Sees)
		if err != nil {
			return t, jobs.Alert{}, web.Refusal([]error{err})
		}
		a.Hash = w.Hash()
		if b.Hash != "" && b.Hash != a.Hash {
			return t, jobs.Alert{}, huma.Error409Conflict("the window was changed since it was " +
				"shown: look at it again before you approve it")
		}
		if covers, err = covered(w, a, s.Now()); err != nil {
			return t, jobs.Alert{}, web.Refusal([]error{err})
		}
		t.Approvals = append(slices.Clone(t.Approvals), a)
		e := event("window-approved", in.Window, g)
		e.Detail["approval"], e.Detail["for"], e.Detail["reference"] = a.ID, a.For, a.Ref
		e.Detail["hash"], e.Detail["customer"] = a.Hash, a.Customer
		return t, e, nil
	})
	if err != nil {
		return nil, err
	}
	out = shown(ctx, out)
	if b.Check {
		a.ID = "" // there is no such approval
		return &approveOutput{api.Approved{Approval: a, Version: out.Version, Occurrences: covers}}, nil
	}
	web.LogOrder(s.Log, "window approved", g, "window", in.Window, "approval", a.ID, "occurrences",
		covers)
	return &approveOutput{api.Approved{Approval: a, Version: out.Version, Occurrences: covers}}, nil
}

// coveredMax bounds how many occurrences of an approval are counted.
const coveredMax = 10_000

// covered counts the occurrences that an approval is for. One that is for none, names a
// start at which nothing begins, or is over before it begins, is a mistake.
func covered(w windows.Window, a windows.Approval, now time.Time) (int, error) {
	if len(a.Starts) == 0 && !a.Until.After(now) {
		return 0, web.Mistake("body.until", "%s is over: nothing begins before it any more",
			a.Until.UTC().Format(time.RFC3339))
	}
	from := a.From
	if len(a.Starts) > 0 {
		from = slices.MinFunc(a.Starts, time.Time.Compare)
	}
	left, n := slices.Clone(a.Starts), 0
	for o := range w.Occurrences(from) {
		if len(a.Starts) > 0 {
			if slices.ContainsFunc(left, o.Start.Equal) && !o.End.After(now) {
				return n, web.Mistake("body.starts", "the occurrence of %s that begins at %s is over", w.Name,
					o.Start.UTC().Format(time.RFC3339))
			}
			before := len(left)
			left = slices.DeleteFunc(left, o.Start.Equal)
			n += before - len(left)
			if len(left) == 0 || o.Start.After(slices.MaxFunc(left, time.Time.Compare)) {
				break
			}
			continue
		}
		if o.Start.After(a.Until) || n == coveredMax {
			break
		}
		if !o.Start.Before(a.From) && !o.End.After(a.Until) {
			n++
		}
	}
	switch {
	case len(left) > 0:
		return n, web.Mistake("body.starts", "no occurrence of %s begins at %s", w.Name,
			left[0].UTC().Format(time.RFC3339))
	case n == 0:
		return n, web.Mistake("body.from", "no occurrence of %s is within that span", w.Name)
	}
	return n, nil
}

// withdraw answers POST /v1/approvals/{approval}/withdraw.
func (s Approvals) withdraw(ctx context.Context, in *withdrawnInput) (*changedOutput, error) {
	g, wrong := in.Giver("withdrawn")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := s.Calendar.agree(ctx, manner{}, func(t windows.Timetable, book *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		i := slices.IndexFunc(t.Approvals, func(a windows.Approval) bool { return a.ID == in.Approval })
		none := huma.Error404NotFound(fmt.Sprintf("there is no approval %q; "+
			"`muster windows ls` lists them", web.Clip(in.Approval)))
		if i < 0 {
			return t, jobs.Alert{}, none
		}
		w, _ := book.Window(t.Approvals[i].Window)
		customer := cmp.Or(t.Approvals[i].Customer, w.Owner())
		may := deed{access.Approve, w.For, customer, none}
		if err := may.refuse(ctx, s.Stock); err != nil {
			return t, jobs.Alert{}, err
		}
		e := event("approval-withdrawn", t.Approvals[i].Window, g)
		e.Detail["approval"] = in.Approval
		t.Approvals = slices.Delete(slices.Clone(t.Approvals), i, i+1)
		return t, e, nil
	})
	if err == nil {
		web.LogOrder(s.Log, "approval withdrawn", g, "approval", in.Approval)
	}
	return &changedOutput{shown(ctx, out)}, err
}

// freeze answers POST /v1/freezes.
func (s Approvals) freeze(ctx context.Context, in *freezeInput) (*changedOutput, error) {
	b := in.Body
	g, wrong := web.GiverOf(b.OrderRequest, "frozen", in.Caller(), in.User)
	if g.Reason == "" {
		wrong = append(wrong, web.Mistake("body.reason",
			"a reason is needed: whoever cannot work must learn why"))
	}
	now := s.Now().UTC().Truncate(time.Second)
	o := windows.FreezeOrder{Name: b.Name, Level: b.Level, Of: b.Of, From: b.From.Time,
		Until: b.Until.Time, Reason: g.Reason, By: g.Name, At: now}
	if o.From.IsZero() {
		o.From = now
	}
	_, err := o.Freeze()
	if wrong = append(wrong, web.Mistakes("body", err)...); len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := s.Calendar.agree(ctx, manner{}, func(t windows.Timetable, _ *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		t.Freezes = append(slices.Clone(t.Freezes), o)
		e := event("frozen", o.Name, g)
		e.Detail["for"], e.Detail["from"] = o.Level+" "+o.Of, jobs.Time{Time: o.From}
		e.Detail["until"] = jobs.Time{Time: o.Until}
		return t, e, nil
	})
	if err == nil {
		web.LogOrder(s.Log, "freeze ordered", g, "freeze", o.Name, "for", o.Level+" "+o.Of)
	}
	return &changedOutput{out}, err
}

// liftFreeze answers POST /v1/freezes/{freeze}/lift.
func (s Approvals) liftFreeze(ctx context.Context, in *liftFreezeInput) (*changedOutput, error) {
	g, wrong := in.Reasoned("lifted")
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	out, err := s.Calendar.agree(ctx, manner{}, func(t windows.Timetable, book *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		i := slices.IndexFunc(t.Freezes, func(o windows.FreezeOrder) bool { return o.Name == in.Freeze })
		if i < 0 {
			for _, f := range book.Agreed().Freezes {
				if f.Name == in.Freeze {
					return t, jobs.Alert{}, huma.Error409Conflict("the freeze " + in.Freeze +
						" is in a file: change that and apply it")
				}
			}
			return t, jobs.Alert{}, huma.Error404NotFound(fmt.Sprintf(
				"there is no freeze %q; `muster windows ls` lists them", web.Clip(in.Freeze)))
		}
		t.Freezes = slices.Delete(slices.Clone(t.Freezes), i, i+1)
		return t, event("unfrozen", in.Freeze, g), nil
	})
	if err == nil {
		web.LogOrder(s.Log, "freeze lifted", g, "freeze", in.Freeze)
	}
	return &changedOutput{out}, err
}

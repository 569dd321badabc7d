package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs"
	"muster/windows"
)

type (
	approveInput struct {
		Asked
		User   string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Window string `path:"window"`
		Body   api.ApproveRequest
	}
	approveOutput  struct{ Body api.Approved }
	withdrawnInput struct {
		Order
		Approval string `path:"approval"`
	}
	freezeInput struct {
		Asked
		User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
		Body api.FreezeRequest
	}
	liftFreezeInput struct {
		Order
		Freeze string `path:"freeze"`
	}
)

// approve answers POST /v1/windows/{window}/approve.
func (s *Server) approve(ctx context.Context, in *approveInput) (*approveOutput, error) {
	b := in.Body
	g, wrong := giverOf(b.OrderRequest, "approved", in.who, in.User)
	if len(b.Starts) > 0 == (!b.From.IsZero() || !b.Until.IsZero()) {
		wrong = append(wrong, mistake("body", "give a span (from, until) or the starts of occurrences"))
	}
	if len(b.Starts) == 0 && !b.Until.After(b.From.Time) {
		wrong = append(wrong, mistake("body.until", "it is not after from"))
	}
	if len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	a := windows.Approval{ID: strings.ToLower(rand.Text()[:8]), Window: in.Window,
		By: g.name, For: b.For,
		At: s.now().UTC().Truncate(time.Second), Ref: b.Reference, From: b.From.Time, Until: b.Until.Time}
	for _, t := range b.Starts {
		a.Starts = append(a.Starts, t.Time)
	}
	covers := 0
	out, err := s.agree(ctx, manner{}, func(t windows.Timetable, book *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		w, ok := book.Window(in.Window)
		if !ok {
			return t, jobs.Alert{}, noWindow(in.Window)
		}
		var err error
		if a.Customer, err = s.agreeing(w, b.Customer); err != nil {
			return t, jobs.Alert{}, refusal([]error{err})
		}
		a.Hash = w.Hash()
		if b.Hash != "" && b.Hash != a.Hash {
			return t, jobs.Alert{}, huma.Error409Conflict("the window was changed since it was " +
				"shown: look at it again before you approve it")
		}
		if covers, err = covered(w, a, s.now()); err != nil {
			return t, jobs.Alert{}, refusal([]error{err})
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
	logOrder(s.log, "window approved", g, "window", in.Window, "approval", a.ID, "occurrences", covers)
	return &approveOutput{api.Approved{Approval: a, Version: out.Version, Occurrences: covers}}, nil
}

// coveredMax bounds how many occurrences of an approval are counted.
const coveredMax = 10_000

// covered counts the occurrences that an approval is for. One that is for none, names a
// start at which nothing begins, or is over before it begins, is a mistake.
func covered(w windows.Window, a windows.Approval, now time.Time) (int, error) {
	if len(a.Starts) == 0 && !a.Until.After(now) {
		return 0, mistake("body.until", "%s is over: nothing begins before it any more",
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
				return n, mistake("body.starts", "the occurrence of %s that begins at %s is over", w.Name,
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
		return n, mistake("body.starts", "no occurrence of %s begins at %s", w.Name,
			left[0].UTC().Format(time.RFC3339))
	case n == 0:
		return n, mistake("body.from", "no occurrence of %s is within that span", w.Name)
	}
	return n, nil
}

// withdraw answers POST /v1/approvals/{approval}/withdraw.
func (s *Server) withdraw(ctx context.Context, in *withdrawnInput) (*changedOutput, error) {
	g, wrong := in.giver("withdrawn")
	if len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	out, err := s.agree(ctx, manner{}, func(t windows.Timetable, _ *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		i := slices.IndexFunc(t.Approvals, func(a windows.Approval) bool { return a.ID == in.Approval })
		if i < 0 {
			return t, jobs.Alert{}, huma.Error404NotFound(fmt.Sprintf("there is no approval %q; "+
				"`muster windows ls` lists them", clip(in.Approval)))
		}
		e := event("approval-withdrawn", t.Approvals[i].Window, g)
		e.Detail["approval"] = in.Approval
		t.Approvals = slices.Delete(slices.Clone(t.Approvals), i, i+1)
		return t, e, nil
	})
	if err == nil {
		logOrder(s.log, "approval withdrawn", g, "approval", in.Approval)
	}
	return &changedOutput{out}, err
}

// freeze answers POST /v1/freezes.
func (s *Server) freeze(ctx context.Context, in *freezeInput) (*changedOutput, error) {
	b := in.Body
	g, wrong := giverOf(b.OrderRequest, "frozen", in.who, in.User)
	if g.reason == "" {
		wrong = append(wrong, mistake("body.reason",
			"a reason is needed: whoever cannot work must learn why"))
	}
	now := s.now().UTC().Truncate(time.Second)
	o := windows.FreezeOrder{Name: b.Name, Level: b.Level, Of: b.Of, From: b.From.Time,
		Until: b.Until.Time, Reason: g.reason, By: g.name, At: now}
	if o.From.IsZero() {
		o.From = now
	}
	_, err := o.Freeze()
	if wrong = append(wrong, mistakes("body", err)...); len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	out, err := s.agree(ctx, manner{}, func(t windows.Timetable, _ *windows.Book) (
		windows.Timetable, jobs.Alert, error) {
		t.Freezes = append(slices.Clone(t.Freezes), o)
		e := event("frozen", o.Name, g)
		e.Detail["for"], e.Detail["from"] = o.Level+" "+o.Of, jobs.Time{Time: o.From}
		e.Detail["until"] = jobs.Time{Time: o.Until}
		return t, e, nil
	})
	if err == nil {
		logOrder(s.log, "freeze ordered", g, "freeze", o.Name, "for", o.Level+" "+o.Of)
	}
	return &changedOutput{out}, err
}

// liftFreeze answers POST /v1/freezes/{freeze}/lift.
func (s *Server) liftFreeze(ctx context.Context, in *liftFreezeInput) (*changedOutput, error) {
	g, wrong := in.reasoned("lifted")
	if len(wrong) > 0 {
		return nil, refusal(wrong)
	}
	out, err := s.agree(ctx, manner{}, func(t windows.Timetable, book *windows.Book) (
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
				"there is no freeze %q; `muster windows ls` lists them", clip(in.Freeze)))
		}
		t.Freezes = slices.Delete(slices.Clone(t.Freezes), i, i+1)
		return t, event("unfrozen", in.Freeze, g), nil
	})
	if err == nil {
		logOrder(s.log, "freeze lifted", g, "freeze", in.Freeze)
	}
	return &changedOutput{out}, err
}

package calendar

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/access"
	"muster/api"
	"muster/jobs"
	"muster/server/fault"
	"muster/server/web"
	"muster/windows"
)

type proposeInput struct {
	web.Asked
	User string `header:"X-Muster-User" doc:"operator; counts in muster demo only"`
	Body api.ProposeRequest
}

// propose answers POST /v1/windows/propose. A proposal opens nothing before somebody approves it,
// and replaces nothing: so it needs less than the right to apply files.
func (s Windows) propose(ctx context.Context, in *proposeInput) (*changedOutput, error) {
	b := in.Body
	g, wrong := web.GiverOf(b.OrderRequest, "proposed", in.Caller(), in.User)
	if len(wrong) > 0 {
		return nil, web.Refusal(wrong)
	}
	if there := customersOf(s.Stock, windows.Scope{}, web.ViewOf(ctx).Sees); b.Customer == "" ||
		!slices.Contains(there, b.Customer) {
		return nil, web.Refusal([]error{web.Mistake("body.customer", "no host of customer %q is known "+
			"to you: name a customer of the inventory", web.Clip(b.Customer))})
	}
	its := windows.Scope{Level: windows.Customer, Name: b.Customer}
	may := deed{access.Order, its, b.Customer, noWindow(b.Name)}
	if err := may.refuse(ctx, s.Stock); err != nil {
		return nil, err
	}
	file, err := proposal(b)
	if err != nil {
		return nil, web.Problem(err)
	}
	out, err := s.Calendar.agree(ctx, manner{check: b.Check}, func(t windows.Timetable,
		book *windows.Book) (windows.Timetable, jobs.Alert, error) {
		if _, there := book.Window(b.Name); there {
			return t, jobs.Alert{}, huma.Error409Conflict(fmt.Sprintf("there is a window %q already: "+
				"propose yours under another name", web.Clip(b.Name)))
		}
		next, _, err := t.Apply(windows.Application{Files: []windows.File{file}})
		if err != nil {
			return t, jobs.Alert{}, web.Refusal(plainly(file.Name, web.Mistakes("body", err)))
		}
		then, err := next.Book()
		if err != nil {
			return t, jobs.Alert{}, web.Problem(err)
		}
		w, _ := then.Window(b.Name)
		if _, ahead := firstOf(w.Occurrences(s.Now())); !ahead {
			return t, jobs.Alert{}, web.Refusal([]error{web.Mistake("body.start", "%s in %s is over, or "+
				"was left out when the clocks changed: nothing would open", web.Clip(b.Start), w.Zone)})
		}
		e := event("window-proposed", b.Name, g)
		e.Detail["customer"], e.Detail["start"], e.Detail["length"] = b.Customer, b.Start, b.Length
		return next, e, nil
	})
	if err == nil && !b.Check {
		web.LogOrder(s.Log, "window proposed", g, "window", b.Name, "customer", b.Customer)
	}
	return &changedOutput{shown(ctx, out)}, err
}

// proposal returns a proposed window as a file.
func proposal(b api.ProposeRequest) (windows.File, error) {
	w := map[string]any{"name": b.Name, "customer": b.Customer, "zone": b.Zone, "length": b.Length,
		"dates": []string{b.Start}, "approval": "required"}
	if len(b.Runbooks) > 0 {
		w["runbooks"] = b.Runbooks
	}
	// JSON is YAML, in which nothing of a value can be more than a value.
	text, err := json.Marshal(map[string]any{"windows": []any{w}})
	return windows.File{Name: "proposed/" + b.Name, Content: string(text) + "\n"}, err
}

// plainly returns mistakes without the place in a file that nobody wrote.
func plainly(name string, list []error) []error {
	for i, err := range list {
		if m := (*fault.Mistake)(nil); errors.As(err, &m) {
			list[i] = web.Mistake("body", "%s", strings.TrimPrefix(m.Message, name+":1: "))
		}
	}
	return list
}

// shown returns the answer to a change without the facts about the whole house, for those who see a
// part of it.
func shown(ctx context.Context, c api.WindowsChanged) api.WindowsChanged {
	if !web.ViewOf(ctx).Whole() {
		c.Version, c.Void, c.Voided = 0, []string{}, nil
	}
	return c
}

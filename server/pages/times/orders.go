package times

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
	"muster/server/pages/frame"
	"muster/windows"
)

// approveLink returns the address of the order that approves an opening.
func approveLink(o api.CalendarOpening) string {
	q := url.Values{"start": {o.Start.UTC().Format(time.RFC3339)}}
	if o.Customer != "" {
		q.Set("customer", o.Customer)
	}
	return "/windows/" + url.PathEscape(o.Window) + "/order/approve?" + q.Encode()
}

// approve plans the approval of openings of a window, which the address names by their beginnings.
func approve(h frame.House, r *http.Request) (frame.Asking, error) {
	window, customer := r.PathValue("window"), r.FormValue("customer")
	body := api.ApproveRequest{Customer: customer}
	for _, text := range r.Form["start"] {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return frame.Asking{}, frame.Refusal(http.StatusUnprocessableEntity,
				"start=%s: want a time as 2026-12-24T21:00:00Z", text)
		}
		body.Starts = append(body.Starts, jobs.Time{Time: t.UTC()})
	}
	if len(body.Starts) == 0 {
		return frame.Asking{}, frame.Refusal(http.StatusUnprocessableEntity, "the address does not say "+
			"which openings are approved: choose one in the calendar")
	}
	slices.SortFunc(body.Starts, func(a, b jobs.Time) int { return a.Compare(b.Time) })
	list, err := openingsOf(h, window, customer, body.Starts)
	if err != nil {
		return frame.Asking{}, err
	}
	a := frame.Asking{Word: "approve", Title: "Approve: window " + window, Nav: "Windows",
		Method: http.MethodPost, Path: "/v1/windows/" + url.PathEscape(window) + "/approve",
		Back: backTo(body.Starts[0].Time, customer), More: approveFields(r.Form),
		Target: frame.Target{N: len(list), Noun: "opening"}}
	set := []any{"approve", window, customer}
	for _, o := range list {
		a.Hit("%s to %s on the clocks of %s (%s): window %s for %s", o.LocalStart, o.LocalEnd, o.Zone,
			spanOf(o.Start.Time, o.End.Time), o.Window, o.For)
		set, body.Hash = append(set, o.Start.Unix(), o.End.Unix(), o.Hash, o.Approved), o.Hash
	}
	a.Hit("Work that needs a window may begin in it. Any change of the window voids the approval.")
	a.Set = frame.SetOf(set...)
	check := body
	check.Check = true
	if err := h.Call(a.Method, a.Path, check, nil); err != nil {
		return frame.Asking{}, err // nobody is asked about what would be refused
	}
	a.Body = func(form url.Values) any {
		body.OrderRequest = frame.ReasonOnly(form).(api.OrderRequest)
		body.For = strings.TrimSpace(form.Get("for"))
		body.Reference = strings.TrimSpace(form.Get("reference"))
		return body
	}
	return a, nil
}

// openingsOf returns the openings of a window that begin at instants, as they are now.
func openingsOf(h frame.House, window, customer string, starts []jobs.Time) ([]api.CalendarOpening,
	error) {
	q := url.Values{"from": {starts[0].Format(time.RFC3339)},
		"until": {starts[len(starts)-1].Add(time.Second).Format(time.RFC3339)}}
	if customer != "" {
		q.Set("customer", customer)
	}
	var c api.Calendar
	if err := h.Get("/v1/calendar", q, &c); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(c.Openings, func(o api.CalendarOpening) bool {
		return o.Window != window || customer != "" && o.Customer != customer ||
			!slices.ContainsFunc(starts, func(t jobs.Time) bool { return t.Equal(o.Start.Time) })
	}), nil
}

// backTo returns the address of the week of an instant.
func backTo(t time.Time, customer string) string {
	q := url.Values{"from": {t.UTC().Format(time.DateOnly)}}
	if customer != "" {
		q.Set("customer", customer)
	}
	return "/windows?" + q.Encode()
}

// withdraw plans that an approval is taken back.
func withdraw(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("approval")
	var list api.WindowList
	if err := h.Get("/v1/windows", nil, &list); err != nil {
		return frame.Asking{}, err
	}
	i := slices.IndexFunc(list.Approvals, func(a windows.Approval) bool { return a.ID == id })
	if i < 0 {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no approval %q", id)
	}
	one := list.Approvals[i]
	a := frame.Asking{Word: "withdraw", Title: "Withdraw: approval " + id, Nav: "Windows",
		Method: http.MethodPost, Path: "/v1/approvals/" + url.PathEscape(id) + "/withdraw",
		Back: "/windows", Body: frame.ReasonOnly, Stops: true,
		Target: frame.Target{N: 1, Noun: "approval", Set: frame.SetOf(fmt.Sprintf("%+v", one))}}
	a.Hit("The approval of window %s by %s, for %s.", one.Window, one.By, covers(one))
	if one.Ref != "" {
		a.Hit("Its reference: %s", one.Ref)
	}
	a.Hit("Nothing begins in its openings any more. Jobs that run continue, and jobs that wait for " +
		"one are deferred when it begins.")
	return a, nil
}

// propose plans a new opening of a customer.
func propose(h frame.House, r *http.Request) (frame.Asking, error) {
	get := func(name string) string { return strings.TrimSpace(r.FormValue(name)) }
	body := api.ProposeRequest{Name: get("name"), Customer: get("customer"), Zone: get("tz"),
		Start: strings.Replace(get("start"), "T", " ", 1), Length: get("length"),
		Runbooks: strings.Fields(strings.ReplaceAll(get("runbooks"), ",", " "))}
	a := frame.Asking{Word: "propose", Title: "Propose an opening", Nav: "Windows",
		Method: http.MethodPost, Path: "/v1/windows/propose", Back: "/windows",
		More: proposeFields(r.Form), Target: frame.Target{N: 1, Noun: "opening",
			Set: frame.SetOf("propose", "one new opening")}}
	a.Hit("One new opening. It opens nothing before somebody of the customer has approved it, and " +
		"changes no other window.")
	if day, err := time.Parse("2006-01-02 15:04", body.Start); err == nil {
		a.Back = backTo(day, body.Customer)
	}
	a.Body = func(form url.Values) any {
		body.OrderRequest = frame.ReasonOnly(form).(api.OrderRequest)
		return body
	}
	return a, nil
}

// selectors has the selector of the hosts of a level, in which NAME stands for the name there.
var selectors = map[string]string{"everyone": "all", "customer": "customer=NAME",
	"site": "site=NAME", "group": "group=NAME", "host": "NAME"}

// freeze plans a freeze of hosts, which the address names.
func freeze(h frame.House, r *http.Request) (frame.Asking, error) {
	level, of := r.FormValue("level"), strings.TrimSpace(r.FormValue("of"))
	on, known := selectors[level]
	if !known || (of == "") != (level == "everyone") {
		return frame.Asking{}, frame.Refusal(http.StatusUnprocessableEntity, "say what is frozen: "+
			"everyone, or a customer, site, group or host by its name")
	}
	page, err := frame.HostPage(h, strings.ReplaceAll(on, "NAME", of), "", 1)
	if err != nil {
		return frame.Asking{}, err
	}
	what := strings.TrimSpace(level + " " + of)
	a := frame.Asking{Word: "freeze", Title: "Freeze: " + what, Nav: "Windows",
		Method: http.MethodPost, Path: "/v1/freezes", Back: "/windows#freezes", Reason: true,
		Stops: true, More: freezeFields(r.Form), Target: frame.Target{N: page.Total, Noun: "host",
			Set: frame.SetOf("freeze", level, of, page.Total)}}
	a.Hit("%s of %s. No work begins there until the freeze ends; jobs that run continue.",
		frame.Count(page.Total, "host", "hosts"), what)
	a.Body = func(form url.Values) any {
		body := api.FreezeRequest{OrderRequest: frame.ReasonOnly(form).(api.OrderRequest),
			Name: strings.TrimSpace(form.Get("name")), Level: level, Of: of}
		if t, err := time.Parse("2006-01-02T15:04", form.Get("until")); err == nil {
			body.Until = jobs.Time{Time: t.UTC()}
		}
		return body
	}
	if text := r.PostFormValue("until"); text != "" {
		if _, err := time.Parse("2006-01-02T15:04", text); err != nil {
			return frame.Asking{}, frame.Refusal(http.StatusUnprocessableEntity,
				"until %s: want a time of UTC as 2026-12-24T22:00", text)
		}
	}
	return a, nil
}

// unfreeze plans that a freeze that was ordered by hand is lifted.
func unfreeze(h frame.House, r *http.Request) (frame.Asking, error) {
	name := r.PathValue("freeze")
	var list api.WindowList
	if err := h.Get("/v1/windows", nil, &list); err != nil {
		return frame.Asking{}, err
	}
	i := slices.IndexFunc(list.Freezes, func(f api.FreezeInfo) bool { return f.Name == name })
	if i < 0 {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no freeze %q", name)
	}
	f := list.Freezes[i]
	a := frame.Asking{Word: "unfreeze", Title: "Lift: freeze " + name, Nav: "Windows",
		Method: http.MethodPost, Path: "/v1/freezes/" + url.PathEscape(name) + "/lift",
		Back: "/windows#freezes", Body: frame.ReasonOnly, Reason: true,
		Target: frame.Target{N: 1, Noun: "freeze", Set: frame.SetOf(fmt.Sprintf("%+v", f))}}
	a.Hit("The freeze of %s, %s: %s.", f.For, spanOf(f.From.Time, f.Until.Time), f.Reason)
	a.Hit("It is %s. Jobs that wait for its end may begin.", freezeState(f))
	return a, nil
}

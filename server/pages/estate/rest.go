package estate

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster/server/pages/frame"

	"muster/api"
)

// theSchedules lists the schedules.
func theSchedules(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.ScheduleList
	if err := h.Get("/v1/schedules", nil, &list); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Schedules", Nav: "Schedules", Parts: []frame.Part{
		{ID: "schedules", Live: true, Hold: true, Body: scheduleTable(list.Schedules)}}}, nil
}

// scheduleFacts has what the page of a schedule shows.
type scheduleFacts struct {
	s      api.ScheduleInfo
	ticks  frame.Asked[api.TickList]
	can    []frame.Order
	cannot []frame.Denied
}

// schedule shows a schedule with the ticks ahead.
func schedule(h frame.House, r *http.Request) (frame.Show, error) {
	name := r.PathValue("schedule")
	path := "/v1/schedules/" + url.PathEscape(name)
	var f scheduleFacts
	if err := h.Get(path, nil, &f.s); err != nil {
		return frame.Show{}, err
	}
	f.ticks = frame.Try[api.TickList](h, path+"/next", url.Values{"count": {"20"}})
	at := "/schedules/" + name + "/order/"
	list := []frame.Order{{Word: "pause", Name: "Pause", Link: at + "pause"}, {Word: "run",
		Name: "Run now", Link: at + "run"}}
	if f.s.Paused != "" {
		list[0] = frame.Order{Word: "resume", Name: "Resume", Link: at + "resume"}
	}
	f.can, f.cannot = frame.Sift(h, list, map[string]string{"pause": path + "/pause",
		"resume": path + "/resume", "run": path + "/run"})
	return frame.Show{Title: "Schedule " + name, Nav: "Schedules", Parts: []frame.Part{
		{ID: "schedule", Live: true, Body: schedulePart(f)},
		{ID: "orders", Live: true, Body: frame.OrderPart(f.can, f.cannot)},
		{ID: "ticks", Body: ticksPart(f.ticks)}}}, nil
}

// factsOfSchedule lists what a schedule does.
func factsOfSchedule(s api.ScheduleInfo) []frame.Fact {
	var args []string
	for _, name := range frame.Sorted(s.Args) {
		args = append(args, name+"="+s.Args[name])
	}
	skipped := ""
	if s.Ticks.Skipped > 0 {
		skipped = frame.Count(s.Ticks.Skipped, "tick was", "ticks were") + " missed and not fired"
	}
	enabled := "no"
	if s.Enabled {
		enabled = "yes"
	}
	return []frame.Fact{{Name: "Runs", Value: s.Runbook, Link: "/runbooks/" + s.Runbook},
		{Name: "Arguments", Value: strings.Join(args, " ")}, {Name: "On", Value: s.On},
		{Name: "When", Value: s.Cron + " (" + s.Zone + ")"}, {Name: "Enabled", Value: enabled},
		{Name: "Paused", Value: s.Paused}, frame.Timed("Next tick", s.Next), frame.Timed("Last tick",
			s.Ticks.Tick),
		{Name: "Result of it", Value: s.Ticks.Result},
		{Name: "Its task", Value: string(s.Ticks.Task), Link: frame.LinkOf(string(s.Ticks.Task))},
		{Name: "Skipped", Value: skipped}, {Name: "Owner", Value: s.Owner}, {Name: "Written by",
			Value: s.By},
		frame.Timed("Written", s.At)}
}

// historyNames are the filters of history, in the order of their fields.
var historyNames = []string{"customer", "host", "runbook", "operator", "outcome", "task", "from",
	"to"}

// historyDays is the time that history shows unless it is asked for another.
const historyDays = 7

// historyFacts has what the page of history shows.
type historyFacts struct {
	q    url.Values
	from string
	page api.PastJobs
}

// theHistory shows jobs that have ended, those of the last days first.
func theHistory(h frame.House, r *http.Request) (frame.Show, error) {
	f := historyFacts{q: r.URL.Query()}
	ask := url.Values{"limit": {"100"}}
	for _, name := range append([]string{"cursor"}, historyNames...) {
		if v := strings.TrimSpace(f.q.Get(name)); v != "" {
			ask.Set(name, v)
		}
	}
	if ask.Get("from") == "" {
		f.from = time.Now().UTC().AddDate(0, 0, -historyDays).Truncate(time.Hour).Format(time.RFC3339)
		ask.Set("from", f.from)
	} else {
		f.from = ask.Get("from")
	}
	s := frame.Show{Title: "History", Nav: "History", Top: historyForm(f)}
	if err := h.Get("/v1/history", ask, &f.page); err != nil {
		p := frame.ProblemOf(err)
		s.Status = p.Status
		s.Parts = []frame.Part{{ID: "problem", Body: frame.ProblemPart(p)}}
		return s, nil
	}
	s.Parts = []frame.Part{{ID: "past", Body: historyPart(f)}}
	return s, nil
}

// file returns the address of the same jobs as a file.
func (f historyFacts) file(path string) string {
	q := url.Values{}
	for _, name := range historyNames {
		if v := f.q.Get(name); v != "" {
			q.Set(name, v)
		}
	}
	if q.Get("from") == "" {
		q.Set("from", f.from)
	}
	return path + "?" + q.Encode()
}

// theApprovals lists the tasks that wait for signatures.
func theApprovals(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.HeldList
	if err := h.Get("/v1/approvals", nil, &list); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Approvals", Nav: "Approvals", Top: approvalsTop(), Parts: []frame.Part{
		{ID: "held", Live: true, Hold: true, Body: heldTable(list.Approvals)}}}, nil
}

// approval shows the plan of a task that waits for signatures.
func approval(h frame.House, r *http.Request) (frame.Show, error) {
	id := r.PathValue("task")
	var d api.HeldDetail
	if err := h.Get("/v1/approvals/"+url.PathEscape(id), nil, &d); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Approve " + d.Runbook + " on " + frame.Count(d.Hosts, "host", "hosts"),
		Nav: "Approvals", Parts: []frame.Part{{ID: "held", Body: heldPart(d)}}}, nil
}

// factsOfHeld lists the plan of a task that waits for signatures.
func factsOfHeld(d api.HeldDetail) []frame.Fact {
	missing := "not known: this server has no folder trust"
	if d.Missing != nil {
		missing = strconv.Itoa(*d.Missing)
	}
	return []frame.Fact{{Name: "Runbook", Value: d.Runbook, Link: "/runbooks/" + d.Runbook},
		{Name: "Arguments", Value: d.Ran.Text()}, {Name: "On", Value: d.On},
		{Name: "Operator", Value: d.Operator}, {Name: "Reason", Value: d.Reason},
		{Name: "Breaks the glass", Value: d.BreakGlass},
		{Name: "Hash of the order", Value: d.Hash}, {Name: "Signed by", Value: strings.Join(d.Signed,
			", ")},
		{Name: "People who must still sign", Value: missing}, frame.Timed("Since", d.Since),
		frame.Timed("Expires", d.Until), frame.Timed("Not before", d.NotBefore), frame.Timed("Not after",
			d.NotAfter)}
}

// auditNames are the filters of the audit log.
var auditNames = []string{"who", "verb", "object"}

// theAudit shows the audit log, the newest entry first.
func theAudit(h frame.House, r *http.Request) (frame.Show, error) {
	q := r.URL.Query()
	ask := url.Values{"limit": {"100"}}
	for _, name := range append([]string{"before"}, auditNames...) {
		if v := strings.TrimSpace(q.Get(name)); v != "" {
			ask.Set(name, v)
		}
	}
	var page api.AuditPage
	if err := h.Get("/v1/audit", ask, &page); err != nil {
		return frame.Show{}, err
	}
	state := frame.Try[api.AuditState](h, "/v1/audit/state", nil)
	return frame.Show{Title: "Audit log", Nav: "Audit", Top: auditForm(q), Parts: []frame.Part{
		{ID: "state", Body: auditStatePart(state)}, {ID: "entries", Body: auditTable(page, q)}}}, nil
}

// endOf says how a request of the audit log ended.
func endOf(e api.AuditEntry) string {
	if e.Ended == nil {
		return ""
	}
	return e.Ended.Result
}

// theAccess shows who the person is, what that proves, and the tokens.
func theAccess(h frame.House, _ *http.Request) (frame.Show, error) {
	var who api.Whoami
	if err := h.Get("/v1/whoami", nil, &who); err != nil {
		return frame.Show{}, err
	}
	tokens := frame.Try[api.TokenList](h, "/v1/tokens", nil)
	return frame.Show{Title: "Access", Nav: "Audit", Parts: []frame.Part{{ID: "who",
		Body: whoPart(who)},
		{ID: "tokens", Body: tokenTable(tokens)}}}, nil
}

// factsOfWho lists who a person is.
func factsOfWho(w api.Whoami) []frame.Fact {
	return []frame.Fact{{Name: "Principal", Value: w.Principal}, {Name: "Proved by", Value: w.Proof},
		{Name: "Token", Value: w.Token}, frame.Timed("Ends", w.Expires),
		{Name: "Groups", Value: strings.Join(w.Groups, ", ")},
		{Name: "May, somewhere", Value: strings.Join(w.Verbs, ", ")}, {Name: "Admin",
			Value: frame.Yes(w.Admin)}}
}

// scheduleState says whether a schedule has ticks.
func scheduleState(s api.ScheduleInfo) string {
	switch {
	case s.Paused != "":
		return "paused: " + s.Paused
	case !s.Enabled:
		return "not enabled"
	}
	return "enabled"
}

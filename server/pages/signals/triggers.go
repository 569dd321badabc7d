package signals

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
)

// theTriggers lists the triggers in force.
func theTriggers(h frame.House, _ *http.Request) (frame.Show, error) {
	var list api.TriggerList
	if err := h.Get("/v1/triggers", nil, &list); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Triggers", Nav: "Events", Top: frame.Nearby(nearEvents("Triggers")),
		Parts: []frame.Part{{ID: "triggers", Live: true, Body: triggerTable(list)}}}, nil
}

// trigger shows a trigger with its last firings.
func trigger(h frame.House, r *http.Request) (frame.Show, error) {
	name := r.PathValue("trigger")
	var t api.TriggerInfo
	if err := h.Get("/v1/triggers/"+url.PathEscape(name), nil, &t); err != nil {
		return frame.Show{}, err
	}
	past := frame.Try[api.FiringList](h, "/v1/firings", url.Values{"trigger": {name},
		"limit": {strconv.Itoa(shown)}})
	return frame.Show{Title: "Trigger " + name, Nav: "Events", Parts: []frame.Part{
		{ID: "trigger", Live: true, Body: triggerPart(t)},
		{ID: "firings", Live: true, Body: lastFirings(name, past)}}}, nil
}

// factsOfTrigger lists what a trigger is told to do.
func factsOfTrigger(t api.TriggerInfo) []frame.Fact {
	enabled := "no: it does nothing"
	if t.Enabled {
		enabled = "yes"
	}
	some := func(list []string, none string) string {
		if len(list) == 0 {
			return none
		}
		return strings.Join(list, ", ")
	}
	return []frame.Fact{{Name: "Enabled", Value: enabled}, {Name: "Acts as", Value: t.Principal},
		{Name: "Sources", Value: some(t.Sources, "all")}, {Name: "Kinds", Value: some(t.Kinds, "all")},
		{Name: "Customers", Value: some(t.Customers, "all")},
		{Name: "When", Value: some(t.When, "always")},
		{Name: "Runs", Value: t.Runbook, Link: "/runbooks/" + url.PathEscape(t.Runbook)},
		{Name: "Arguments", Value: strings.Join(t.Args, ", ")},
		{Name: "On", Value: t.On, Link: "/fleet?on=" + url.QueryEscape(t.On)},
		{Name: "Of these", Value: t.Narrowed}, {Name: "Hosts at most", Value: strconv.Itoa(t.AtMost)},
		{Name: "Limit", Value: t.Limit}, {Name: "Firings that count for it",
			Value: strconv.Itoa(t.Recent)}, {Name: "Collects", Value: t.Debounce},
		{Name: "Collected now", Value: strings.Join(t.Waiting, ", ")}}
}

// theFirings lists what triggers did, the newest first.
func theFirings(h frame.House, r *http.Request) (frame.Show, error) {
	q := r.URL.Query()
	s := frame.Show{Title: "What triggers did", Nav: "Events", Top: firingsTop(q)}
	var list api.FiringList
	err := h.Get("/v1/firings", frame.Ask(q, shown, "trigger", "event", "from"), &list)
	if err != nil {
		return frame.Without(s, "Firings", err)
	}
	s.Parts = []frame.Part{{ID: "firings", Live: true, Hold: true, Body: firingsPart(list, q)}}
	return s, nil
}

// place returns the place of the next page of firings; empty: there is none.
func place(next int) string {
	if next == 0 {
		return ""
	}
	return strconv.Itoa(next)
}

// resultWords says what a trigger would do.
func resultWords(result string) string {
	switch result {
	case "passes":
		return "would do nothing"
	case "fires":
		return "would fire"
	case "collects":
		return "would collect it"
	case "limited":
		return "would be held by its limit"
	}
	return "would be refused"
}

// pairs returns arguments as NAME=VALUE, in the order of their names.
func pairs(args map[string]string) []string {
	var out []string
	for _, name := range frame.Sorted(args) {
		out = append(out, name+"="+frame.ClipText(args[name]))
	}
	return out
}

// hostsWords says on which hosts a trigger would run.
func hostsWords(d api.TriggerDecision) string {
	if d.Total == 0 {
		return ""
	}
	return frame.Count(d.Total, "host", "hosts") + ": " + frame.ClipList(d.Hosts)
}

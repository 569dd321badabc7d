package signals

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
)

// eventStates are the states of an event, in the order in which people read them.
var eventStates = []string{"waiting", "done", "stuck", "doubted"}

// eventFields returns the filters of events.
func eventFields(q url.Values) []frame.Field {
	list := frame.FieldsOf(q, "source", "customer", "kind", "state")
	list[3].Words = eventStates
	return list
}

// theEvents lists events from elsewhere, the newest first, with their sources.
func theEvents(h frame.House, r *http.Request) (frame.Show, error) {
	q := r.URL.Query()
	s := frame.Show{Title: "Events from elsewhere", Nav: "Events", Top: eventsTop(q)}
	var list api.EventList
	err := h.Get("/v1/inbox", frame.Ask(q, shown, "source", "customer", "kind", "state", "before"),
		&list)
	if err != nil {
		return frame.Without(s, "Events", err)
	}
	sources := frame.Try[api.EventSources](h, "/v1/ingress", nil)
	s.Parts = []frame.Part{{ID: "events", Live: true, Hold: true, Body: eventTable(list, q)},
		{ID: "sources", Live: true, Body: sourceTable(sources)}}
	return s, nil
}

// bodyShown bounds the body of an event on its page.
const bodyShown = 32 << 10 // bytes

// eventFacts has what the page of an event shows.
type eventFacts struct {
	e       api.Event
	firings frame.Asked[api.FiringList]
	can     []frame.Order
	cannot  []frame.Denied
}

// event shows an event: what came, and what was done about it.
func event(h frame.House, r *http.Request) (frame.Show, error) {
	id := r.PathValue("event")
	path := "/v1/inbox/" + url.PathEscape(id)
	var f eventFacts
	if err := h.Get(path, nil, &f.e); err != nil {
		return frame.Show{}, err
	}
	f.firings = frame.Try[api.FiringList](h, "/v1/firings", url.Values{"event": {id},
		"limit": {strconv.Itoa(shown)}})
	f.can, f.cannot = frame.Sift(h, []frame.Order{{Word: "replay", Name: "Send it again",
		Link: "/events/" + url.PathEscape(id) + "/order/replay"}},
		map[string]string{"replay": path + "/replay"})
	return frame.Show{Title: "Event " + id, Nav: "Events", Parts: []frame.Part{
		{ID: "event", Live: true, Body: eventPart(f.e)},
		{ID: "orders", Body: frame.OrderPart(f.can, f.cannot)},
		{ID: "came-to", Live: true, Body: cameTo(f)},
		{ID: "body", Body: bodyPart(f.e)}}}, nil
}

// factsOfEvent lists what is known of an event.
func factsOfEvent(e api.Event) []frame.Fact {
	customer := e.Customer
	if customer == "" {
		customer = "none: it concerns the whole house"
	}
	tries := ""
	if e.Work.Tries > 0 {
		tries = frame.Count(e.Work.Tries, "try has", "tries have") + " failed; the last: " +
			frame.ClipText(e.Work.Error)
	}
	return []frame.Fact{{Name: "State", Value: e.State}, {Name: "Number", Value: strconv.FormatInt(
		e.Seq, 10)}, {Name: "Source", Value: e.Source, Link: "/events?source=" +
		url.QueryEscape(e.Source)}, {Name: "Kind", Value: e.Kind}, {Name: "Customer", Value: customer},
		{Name: "Class", Value: e.Class}, {Name: "Sent by hand by", Value: e.By},
		{Name: "Repeats", Value: e.Again, Link: "/events/" + url.PathEscape(e.Again)},
		{Name: "Size of its body", Value: frame.Count(e.Size, "byte", "bytes")},
		frame.Timed("Stored", e.At), frame.Timed("Worked on until", e.Work.Ended),
		{Name: "Work", Value: tries}}
}

// bodyOf returns the body of an event for people, and whether it was cut.
func bodyOf(e api.Event) (string, bool) {
	var b bytes.Buffer
	if json.Indent(&b, e.Body, "", "  ") != nil {
		b.Reset()
		b.Write(e.Body)
	}
	cut := b.Len() > bodyShown
	if cut {
		b.Truncate(bodyShown)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD"), cut
}

// replay finds out what it would mean to send the body of an event again.
func replay(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("event")
	path := "/v1/inbox/" + url.PathEscape(id)
	var e api.Event
	if err := h.Get(path, nil, &e); err != nil {
		return frame.Asking{}, err
	}
	a := frame.Asking{Word: "replay", Title: "Send it again: event " + id, Nav: "Events",
		Back: "/events/" + url.PathEscape(id), Method: http.MethodPost, Path: path + "/replay",
		Body: frame.ReasonOnly, Target: frame.Target{N: 1, Noun: "event",
			Set: frame.SetOf("replay", e.Event, e.Seq)}}
	a.Hit("The body of event %s, of source %s, comes again as a new event. Triggers work on it as "+
		"they are now: each that fits starts a task of its own, also if one of the first time runs.", id,
		e.Source)
	for _, f := range e.Work.Firings {
		if f.Task != "" {
			a.Hit("The first time trigger %s started task %s.", f.Trigger, f.Task)
		}
	}
	a.Done = func(got *frame.Reply) string {
		var made api.EventTaken
		if json.Unmarshal(got.Body.Bytes(), &made) != nil || made.Event == "" {
			return "/events"
		}
		return "/events/" + url.PathEscape(made.Event)
	}
	return a, nil
}

// eventTest says what the triggers of now would do about an event. Nothing is done.
func eventTest(h frame.House, r *http.Request) (frame.Show, error) {
	id := r.PathValue("event")
	var e api.Event
	if err := h.Get("/v1/inbox/"+url.PathEscape(id), nil, &e); err != nil {
		return frame.Show{}, err
	}
	var would api.TriggerTested
	err := h.Call(http.MethodPost, "/v1/triggers/test", api.TriggerTest{Source: e.Source,
		Kind: e.Kind, Customer: e.Customer, Body: e.Body}, &would)
	if err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "If event " + id + " came now", Nav: "Events", Parts: []frame.Part{
		{ID: "would", Body: wouldPart(id, would)}}}, nil
}

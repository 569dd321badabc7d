package signals

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
)

// noticeStates are the states of a message.
var noticeStates = []string{"waiting", "delivered", "gone", "expired"}

// noticeFields returns the filters of messages.
func noticeFields(q url.Values) []frame.Field {
	list := frame.FieldsOf(q, "receiver", "state")
	list[1].Words = noticeStates
	return list
}

// theNotices lists messages, the newest first.
func theNotices(h frame.House, r *http.Request) (frame.Show, error) {
	q := r.URL.Query()
	s := frame.Show{Title: "Notifications", Nav: "Notices", Top: noticesTop(q)}
	var list api.MessageList
	err := h.Get("/v1/notify/messages", frame.Ask(q, shown, "receiver", "state", "before"), &list)
	if err != nil {
		return frame.Without(s, "Messages", err)
	}
	s.Parts = []frame.Part{{ID: "messages", Live: true, Hold: true, Body: noticeTable(list, q)}}
	return s, nil
}

// notice shows a message with its text.
func notice(h frame.House, r *http.Request) (frame.Show, error) {
	id := r.PathValue("message")
	var m api.Message
	if err := h.Get("/v1/notify/messages/"+url.PathEscape(id), nil, &m); err != nil {
		return frame.Show{}, err
	}
	return frame.Show{Title: "Message " + id, Nav: "Notices", Parts: []frame.Part{
		{ID: "message", Live: true, Body: noticePart(m)}}}, nil
}

// factsOfNotice lists what is known of a message.
func factsOfNotice(m api.Message) []frame.Fact {
	return []frame.Fact{{Name: "State", Value: m.State}, {Name: "Receiver", Value: m.Receiver,
		Link: "/notices?receiver=" + url.QueryEscape(m.Receiver)}, {Name: "Rule", Value: m.Rule},
		{Name: "About", Value: strings.Join(m.Whats, ", ")},
		{Name: "Tries", Value: strconv.Itoa(m.Tries)}, {Name: "The last one", Value: m.Error},
		frame.Timed("Made", m.Created), frame.Timed("Last try", m.At), frame.Timed("Next try", m.Next)}
}

// textOf returns the body of a message as webhooks get it.
func textOf(m api.Message) string {
	b, err := json.MarshalIndent(m.Body, "", "  ")
	if err != nil || m.Body == nil {
		return ""
	}
	return string(b)
}

// receiverFacts has what the page of receivers shows.
type receiverFacts struct {
	api.NotifyReceivers
	no map[string]string // by receiver: why the person may not try it; empty: they may
}

// theReceivers lists whom the rules tell.
func theReceivers(h frame.House, _ *http.Request) (frame.Show, error) {
	s := frame.Show{Title: "Receivers of notifications", Nav: "Notices",
		Top: frame.Nearby(nearNotices("Receivers"))}
	f := receiverFacts{no: map[string]string{}}
	if err := h.Get("/v1/notify/receivers", nil, &f.NotifyReceivers); err != nil {
		return frame.Without(s, "Receivers", err)
	}
	for _, one := range f.Receivers {
		if err := h.May(http.MethodPost, testPath(one.Name)); err != nil {
			f.no[one.Name] = err.Error()
		}
	}
	s.Parts = []frame.Part{{ID: "receivers", Live: true, Body: receiverTable(f)}}
	return s, nil
}

func testPath(receiver string) string {
	return "/v1/notify/receivers/" + url.PathEscape(receiver) + "/test"
}

// countOf says how many messages of a receiver are in a state.
func countOf(r api.NotifyReceiver, state string) string { return strconv.Itoa(r.Counts[state]) }

// testReceiver finds out what it would mean to try a receiver.
func testReceiver(h frame.House, r *http.Request) (frame.Asking, error) {
	name := r.PathValue("receiver")
	var list api.NotifyReceivers
	if err := h.Get("/v1/notify/receivers", nil, &list); err != nil {
		return frame.Asking{}, err
	}
	i := slices.IndexFunc(list.Receivers, func(n api.NotifyReceiver) bool { return n.Name == name })
	if i < 0 {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "there is no receiver %q in the rules "+
			"in force", name)
	}
	to := list.Receivers[i]
	a := frame.Asking{Word: "test", Title: "Send a test: receiver " + name, Nav: "Notices",
		Back: "/notices?receiver=" + url.QueryEscape(name), Method: http.MethodPost,
		Path: testPath(name), Target: frame.Target{N: 1, Noun: "message",
			Set: frame.SetOf("test", to.Name, to.Kind, to.Place)}}
	a.Hit("One message that says that it is a test goes to %s, by %s to %s. It goes the way of all "+
		"others, behind those that wait.", name, to.Kind, to.Place)
	if to.Counts["waiting"] > 0 {
		a.Hit("%s for this receiver.", frame.Count(to.Counts["waiting"], "message waits",
			"messages wait"))
	}
	a.Done = func(got *frame.Reply) string {
		var m api.Message
		if json.Unmarshal(got.Body.Bytes(), &m) != nil || m.ID == "" {
			return a.Back
		}
		return "/notices/" + url.PathEscape(m.ID)
	}
	return a, nil
}

// titleOf returns the title of a message, which has one that can be clicked in any case.
func titleOf(m api.Message) string {
	if m.Title == "" {
		return m.ID
	}
	return m.Title
}

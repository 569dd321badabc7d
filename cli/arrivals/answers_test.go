package arrivals

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/testkit/apitest"
	"muster/testkit/clitest"
)

// what shows an event of a pretended server.
func what(t *testing.T, routes map[string]http.HandlerFunc, e api.Event) (string, int) {
	t.Helper()
	a := apitest.New(t, routes)
	s, _, _ := clitest.NewSession(clitest.NewClient(t, a.URL))
	list, more := answers(context.Background(), s, e)
	return answersText(s, list, more), len(list)
}

func event(firings ...api.EventFiring) api.Event {
	return api.Event{Event: "e1", Work: api.EventWork{Firings: firings}}
}

const summary = `{"task": {"task": "0wcy7y2fb2", "runbook": "diagnose", "operator": "trigger:diagnose",
	"proven": true, "state": "ended", "total": 1, "outcomes": {"succeeded": 1}}, "groups": [{"outcome":
	"succeeded", "count": 1, "hosts": "fw001", "output": "ZXRoMSBkb3duG1sybQo=", "left_out": 7}]}`

// The answer of a task stands with its event, and output of hosts does not control the terminal.
func TestTheAnswerStandsWithItsEvent(t *testing.T) {
	t.Parallel()
	text, _ := what(t, map[string]http.HandlerFunc{
		"GET /v1/tasks/" + apitest.ATask + "/summary": apitest.Answer(summary)},
		event(api.EventFiring{Trigger: "diagnose", Task: apitest.ATask}))
	for _, want := range []string{"diagnose has started:", "1 succeeded", "fw001", "eth1 down"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("the terminal is controlled by %q", text)
	}
}

// A trigger that has collected the event, and fired later, has an answer too; one that the caller may
// not see is told, and the others are shown.
func TestAnswersThatComeLaterOrCannotBeSeen(t *testing.T) {
	t.Parallel()
	text, n := what(t, map[string]http.HandlerFunc{
		"GET /v1/firings": apitest.Answer(`{"firings": [{"event": "e1", "trigger": "later", "result": "fires",
			"task": "0wcy7y2fb2"}]}`),
		"GET /v1/tasks/" + apitest.ATask + "/summary": apitest.Answer(summary),
		"GET /v1/tasks/0wcy7y2fb3/summary":            apitest.Deny(404, `{"detail": "there is no such task"}`)},
		event(api.EventFiring{Trigger: "later", Why: "it fires at 12:00"},
			api.EventFiring{Trigger: "hidden", Task: "0wcy7y2fb3"},
			api.EventFiring{Trigger: "none", Why: "limit"}))
	if n != 2 || !strings.Contains(text, "later has started:") || !strings.Contains(text, "eth1 down") ||
		!strings.Contains(text, "task 0wcy7y2fb3: it cannot be shown") || strings.Contains(text, "none has") {
		t.Errorf("%d answers: %s", n, text)
	}
}

// An event of many triggers shows a few answers, and says so.
func TestAnEventOfManyTasksShowsSome(t *testing.T) {
	t.Parallel()
	var all []api.EventFiring
	for range answersMax + 3 {
		all = append(all, api.EventFiring{Trigger: "x", Task: apitest.ATask})
	}
	text, n := what(t, map[string]http.HandlerFunc{
		"GET /v1/tasks/" + apitest.ATask + "/summary": apitest.Answer(summary)}, event(all...))
	if n != answersMax || !strings.Contains(text, "3 more tasks are not shown") {
		t.Errorf("%d answers: %s", n, text)
	}
}

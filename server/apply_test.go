package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"muster/api"
	"muster/jobs"
	"muster/jobs/queue/hub"
	"muster/testkit/queuetest"
	"muster/windows"
)

// Two applied files about one customer at the same time: the last one won, and both were told
// that all is well. The server refuses the second one now, unless its files are of another customer.
func TestOfTwoWhoApplyAtOnceTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	body := func(customer, length string) api.WindowsRequest {
		return api.WindowsRequest{Files: []windows.File{{Name: customer + ".yaml", Content: "windows:\n- {name: " +
			customer + ", customer: " + customer + ", zone: UTC, start: '0 2 * * *', length: " + length + "}\n"}}}
	}
	put := func(b api.WindowsRequest) (did api.WindowsChanged, status int, words string) {
		t.Helper()
		r, answer := w.raw(http.MethodPut, "/v1/windows", b, nil)
		if err := json.Unmarshal(answer, &did); r.StatusCode == http.StatusOK && err != nil {
			t.Fatal(err)
		}
		return did, r.StatusCode, string(answer)
	}
	look := func(b api.WindowsRequest) api.WindowsRequest {
		t.Helper()
		b.Check = true
		did, status, words := put(b)
		if status != http.StatusOK || did.Basis == "" {
			t.Fatalf("check: %d %s", status, words)
		}
		b.Check, b.Basis = false, did.Basis
		return b
	}
	put(body("acme", "1h"))
	one, two, other := look(body("acme", "2h")), look(body("acme", "3h")), look(body("globex", "1h"))
	if r, answer := w.raw(http.MethodPut, "/v1/windows", one, nil); r.StatusCode != http.StatusOK {
		t.Fatalf("the first: %s %s", r.Status, answer)
	}
	if _, status, words := put(two); status != http.StatusConflict || !strings.Contains(words, "somebody else has just") {
		t.Errorf("the second: %d %s", status, words)
	}
	if r, answer := w.raw(http.MethodPut, "/v1/windows", other, nil); r.StatusCode != http.StatusOK {
		t.Errorf("about another customer: %s %s", r.Status, answer)
	}
	var list api.WindowList
	w.call(http.MethodGet, "/v1/windows", nil, &list)
	if len(list.Windows) != 2 {
		t.Errorf("there are %+v", list.Windows)
	}
	late := body("acme", "4h")
	late.Version = list.Version - 1
	if _, status, words := put(late); status != http.StatusConflict || !strings.Contains(words, "and you expect") {
		t.Errorf("for an older version: %d %s", status, words)
	}
}

// Schedules are applied by the same rule as windows.
func TestSchedulesArePrunedByOwner(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(acme(1))})
	entry := func(name, owner string) string {
		return "- {name: " + name + ", cron: '@daily', zone: UTC, runbook: exec, args: {cmd: uptime}, on: all" + owner + "}\n"
	}
	apply := func(b api.ApplySchedules, text string) (did api.AppliedSchedules, status int) {
		t.Helper()
		b.Files = []windows.File{{Name: "s.yaml", Content: "schedules:\n" + text}}
		r, answer := w.raw(http.MethodPost, "/v1/schedules", b, nil)
		if err := json.Unmarshal(answer, &did); r.StatusCode == http.StatusOK && err != nil {
			t.Fatal(err)
		}
		return did, r.StatusCode
	}
	const acme, globex = ", owner: acme", ", owner: globex"
	if _, status := apply(api.ApplySchedules{}, entry("a1", acme)+entry("a2", acme)+entry("g", globex)+
		entry("n", "")); status != http.StatusOK {
		t.Fatal(status)
	}
	names := func() string {
		var list api.ScheduleList
		w.call(http.MethodGet, "/v1/schedules", nil, &list)
		var all []string
		for _, s := range list.Schedules {
			all = append(all, s.Name)
		}
		return strings.Join(all, " ")
	}
	check := api.ApplySchedules{Check: true}
	seen, _ := apply(check, entry("a1", acme))
	if strings.Join(seen.Left, " ") != "a2" {
		t.Errorf("left are %q", seen.Left)
	}
	prune := api.ApplySchedules{Pruning: windows.Pruning{Prune: true}}
	prune.Check = true
	if did, _ := apply(prune, entry("a1", acme)); len(did.Schedules) != 2 || did.Schedules[1].Change != api.Removed ||
		names() != "a1 a2 g n" {
		t.Errorf("a check does %+v, and there are %s", did, names())
	}
	prune.Check = false
	if _, status := apply(prune, entry("a1", acme)); status != http.StatusOK || names() != "a1 g n" {
		t.Errorf("pruned: %d, there are %s", status, names())
	}
	if _, status := apply(api.ApplySchedules{Basis: seen.Basis}, entry("a1", acme)); status != http.StatusConflict {
		t.Errorf("what was changed since it was looked at: %d", status)
	}
	if _, status := apply(api.ApplySchedules{}, entry("g", acme)); status != http.StatusUnprocessableEntity {
		t.Errorf("the name of another: %d", status)
	}
}

// meddler changes a schedule, once it is armed, behind the next look that a request takes at all
// of them. The server's own duties look at them, too.
type meddler struct {
	*queuetest.Queue
	armed atomic.Bool
	to    jobs.Schedule
}

func (m *meddler) Schedules(ctx context.Context) (list []hub.Schedule, err error) {
	list, err = m.Queue.Schedules(ctx)
	if ctx.Value(http.ServerContextKey) != nil && m.armed.CompareAndSwap(true, false) {
		err = errors.Join(err, m.ChangeSchedule(ctx, hub.Schedule{}, m.to))
	}
	return list, err
}

// Somebody who comes between the look of an apply and its writing is seen: who expects what was
// there before is refused, and nothing of it is done.
func TestAnApplyOfSchedulesIsDoneAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	entry := func(name string) windows.Entry {
		return windows.Entry{Name: name, Cron: "@daily", Zone: "UTC", Owner: "acme", Enabled: true,
			Request: windows.Request{Runbook: "exec", On: "all", Args: map[string]string{"cmd": "id"}}}
	}
	between := &meddler{to: jobs.Schedule{Entry: entry("b"), Version: 1}}
	w := start(t, setup{wrap: func(q *queuetest.Queue) everything { between.Queue = q; return between }})
	body := api.ApplySchedules{Files: []windows.File{{Name: "s.yaml", Content: "schedules:\n" +
		"- {name: a, cron: '@daily', zone: UTC, runbook: exec, args: {cmd: id}, on: all, owner: acme}\n" +
		"- {name: b, cron: '@hourly', zone: UTC, runbook: exec, args: {cmd: id}, on: all, owner: acme}\n"}}}
	var seen api.AppliedSchedules
	body.Check = true
	w.call(http.MethodPost, "/v1/schedules", body, &seen)
	between.armed.Store(true) // not in the check
	body.Check, body.Basis = false, seen.Basis
	if r, answer := w.raw(http.MethodPost, "/v1/schedules", body, nil); r.StatusCode != http.StatusConflict {
		t.Fatalf("got %s %s", r.Status, answer)
	}
	list, err := w.queue.Schedules(t.Context())
	if err != nil || len(list) != 1 || list[0].Cron != "@daily" {
		t.Errorf("%v: there is %+v", err, list)
	}
	body.Basis = ""
	var did api.AppliedSchedules
	w.call(http.MethodPost, "/v1/schedules", body, &did)
	if len(did.Schedules) != 2 || did.Schedules[0].Change != api.Added || did.Schedules[1].Change != api.Changed {
		t.Errorf("did %+v", did)
	}
}

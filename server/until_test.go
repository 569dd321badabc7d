package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/jobs/queue"
	"muster/windows"
)

// A window that an older muster took ends when it ended, with a warning; applied anew it lasts to
// the end of that day, and that is said.
func TestAnUntilOfAnOlderMusterIsChangedByAnApplyAlone(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	const text = "windows:\n- {name: w, customer: acme, zone: UTC, start: '0 2 * * *', length: 1h, until: 2030-12-31, " +
		"approval: none}\n"
	_, err := w.queue.SetTimetable(t.Context(), windows.Timetable{Files: []windows.File{{Name: "w.yaml", Content: text}}},
		queue.HubEvent{Event: "windows-applied", Object: "windows", Detail: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	until := func(want string, warned bool) {
		t.Helper()
		var l api.WindowList
		w.call(http.MethodGet, "/v1/windows", nil, &l)
		if i := l.Windows[0]; i.Until != want || (len(i.Outdated) > 0) != warned {
			t.Errorf("it is until %s, warned %q; want %s, %t", i.Until, i.Outdated, want, warned)
		}
	}
	until("2030-12-31 00:00", true)
	var did api.WindowsChanged
	body := api.WindowsRequest{Files: []windows.File{{Name: "w.yaml", Content: text}}}
	w.call(http.MethodPut, "/v1/windows", body, &did)
	if notes := strings.Join(did.Notes, "\n"); !strings.Contains(notes, "window w: until is the end of that day, "+
		"2031-01-01 00:00; an older muster took it for its beginning, 2030-12-31 00:00") || len(did.Changed) != 1 {
		t.Errorf("changed %v, notes %s", did.Changed, notes)
	}
	until("2031-01-01 00:00", false)
	did = api.WindowsChanged{}
	w.call(http.MethodPut, "/v1/windows", body, &did)
	if !did.Already || len(did.Notes) > 0 {
		t.Errorf("the same again: %+v", did)
	}
}

// Whoever applies schedules is told what may surprise in times that are new, and not again.
func TestApplyingSchedulesTellsWhatMaySurprise(t *testing.T) {
	t.Parallel()
	w := start(t, setup{})
	apply := func(more string) api.AppliedSchedule {
		t.Helper()
		var did api.AppliedSchedules
		w.call(http.MethodPost, "/v1/schedules", api.ApplySchedules{Files: []windows.File{{Name: "s.yaml",
			Content: "schedules:\n- {name: s, cron: '0 4 1-7 * SUN', zone: UTC, runbook: exec, args: {cmd: id}, on: all" +
				more + "}\n"}}}, &did)
		if len(did.Schedules) != 1 {
			t.Fatalf("got %+v", did)
		}
		return did.Schedules[0]
	}
	if one := apply(""); len(one.Notes) != 1 || !strings.Contains(one.Notes[0], "either is enough") {
		t.Errorf("notes: %q", one.Notes)
	}
	if one := apply(", priority: low"); one.Change != api.Changed || len(one.Notes) != 0 {
		t.Errorf("other times than before: %+v", one)
	}
}

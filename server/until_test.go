package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/api"
	"muster/windows"
)

// The answer to an apply of schedules names surprises in times that are new, and only then.
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

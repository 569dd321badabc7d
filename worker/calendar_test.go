package worker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/windows"
)

// A large calendar of one customer does not delay the work of others. 250 daily events once kept
// every job from its beginning.
func TestTheCalendarOfOneCustomerDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	hosts := startFleet(t, 1, nil)
	q, spec := prepare(t, hosts)
	var ics strings.Builder
	ics.WriteString("BEGIN:VCALENDAR\n")
	for i := range 250 {
		fmt.Fprintf(&ics, "BEGIN:VEVENT\nUID:e%d\nDTSTART;TZID=Europe/Zurich:20260101T%02d%02d00\nDURATION:PT15M\n"+
			"RRULE:FREQ=DAILY\nEND:VEVENT\n", i, i/60, i%60)
	}
	ics.WriteString("END:VCALENDAR\n")
	table := windows.Timetable{
		Files: []windows.File{{Name: "w.yaml", Content: "windows:\n- {name: all-day, customer: other, " +
			"zone: Europe/Zurich, ics: other.ics, approval: none}\n"}},
		Attached: []windows.File{{Name: "other.ics", Content: ics.String()}},
	}
	began := time.Now()
	if _, err := q.SetTimetable(t.Context(), table, jobs.Alert{Event: "windows-applied", Object: "w"}); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("to set it took %s", took)
	}
	task := submit(t, q, spec, hosts)

	run(t, q)

	j, err := q.Job(t.Context(), jobs.NewID(task, hosts[0].Name))
	if err != nil || j.Outcome != jobs.Succeeded {
		t.Fatalf("%s %s: %q, %v", j.State, j.Outcome, j.Note, err)
	}
}

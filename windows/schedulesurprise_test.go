package windows

import (
	"strings"
	"testing"
)

// Applying a schedule reports each effect that people may not expect, and nothing else.
func TestWhatMaySurpriseOfASchedule(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-22T12:00:00Z")
	for _, test := range []struct{ entry, want string }{
		{`cron: "0 4 * * SUN"`, ""},
		{`cron: "@every 90s"`, ""},
		{`cron: first Sunday 04:00`, ""},
		{`cron: "H H(4-6) * * *"`, ""},
		{`cron: "0 4 1-7 * SUN"`, "the day of the month (1-7) or the weekday (SUN) holds: either is enough"},
		{`cron: "0 4 */2 * sun"`, "both the day of the month (*/2) and the weekday (sun) hold"},
		{`cron: fifth Sunday 04:00`, "not each month has a fifth Sunday"},
		{`cron: "30 2 * * *"`, "at 2027-03-28 02:30 the clocks are set past its time: it comes at 2027-03-28 03:00; " +
			"2027-10-31 02:30 comes twice that night: it comes at the first of the two"},
		{`cron: "30 2 * * *", gap: skip, fold: second`, "it does not come at 2027-03-28 02:30: the clocks are set " +
			"past that hour; 2027-10-31 02:30 comes twice that night: it comes at the second of the two"},
		{`cron: "0 * * * *"`, "it does not come at 2027-03-28 02:00: the clocks are set past that hour; it comes in " +
			"both hours that read 2027-10-31 02:00"},
		{`cron: "0 4 * * SUN", except: [2026-12-24]`, "except 2026-12-24 leaves out nothing"},
		{`cron: "0 4 * * *", except: [2026-12-24, 2020-01-01]`, ""},
	} {
		list, err := ParseSchedules([]File{{"s.yaml", "schedules:\n- {name: s, zone: Europe/Zurich, runbook: exec, " +
			"on: all, " + test.entry + "}"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := list[0].Schedule()
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(s.Surprises(now), "; ")
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.entry, got, test.want)
		}
		s.Zone = Zone{}
		if got := strings.Join(s.Surprises(now), "; "); strings.Contains(got, "clocks") {
			t.Errorf("%s in UTC: %q", test.entry, got)
		}
	}
}

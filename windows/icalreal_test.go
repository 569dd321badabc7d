package windows

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files as the calendars of customers write them: lines end in CRLF and are folded, even within a
// quoted parameter; zones are quoted and have names of their own; and there are many further
// properties.
func TestCalendarsAsTheyAreSent(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		// The first Sunday of a month, ten times: two are left out, one is moved.
		"outlook": {"2026-12-06T01:00:00Z 2h0m0s", "2027-03-08T00:00:00Z 2h0m0s", "2027-04-04T00:00:00Z 2h0m0s",
			"2027-05-02T00:00:00Z 2h0m0s", "2027-06-06T00:00:00Z 2h0m0s", "2027-07-04T00:00:00Z 2h0m0s",
			"2027-08-01T00:00:00Z 2h0m0s", "2027-09-05T00:00:00Z 2h0m0s"},
		// Tuesdays and Thursdays until an instant in UTC, without one; another event is cancelled.
		"google": {"2026-11-25T03:00:00Z 3h0m0s", "2026-12-02T03:00:00Z 3h0m0s", "2026-12-04T03:00:00Z 3h0m0s",
			"2026-12-09T03:00:00Z 3h0m0s", "2026-12-11T03:00:00Z 3h0m0s", "2026-12-16T03:00:00Z 3h0m0s",
			"2026-12-18T03:00:00Z 3h0m0s", "2026-12-23T03:00:00Z 3h0m0s", "2026-12-25T03:00:00Z 3h0m0s",
			"2026-12-30T03:00:00Z 3h0m0s", "2027-01-01T03:00:00Z 3h0m0s"},
		// Whole days of each year, with an alarm.
		"apple": {"2026-12-19T23:00:00Z 360h0m0s", "2027-12-19T23:00:00Z 360h0m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile("testdata/" + name + ".ics")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(text), "\r\n") != strings.Count(string(text), "\n") {
				t.Fatal("its lines do not end in CRLF")
			}
			got := spans(t, string(text), "2026-11-22T00:00:00Z", len(want)+1)
			if diff := cmp.Diff(want, got[:min(len(got), len(want))]); diff != "" ||
				name != "apple" && len(got) != len(want) {
				t.Errorf("%d in all, -want +got:\n%s", len(got), diff)
			}
		})
	}
}

package times

import (
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

func TestOnlyAYesIsConsent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"y\n": true, " YES \n": true, "yes": true, "\n": false, "": false,
		"n\n": false, "yesterday\n": false} {
		var asked strings.Builder
		if got, err := consents(strings.NewReader(text), &asked, "Sure?"); got != want || err != nil ||
			asked.String() != "Sure? [y/N] " {
			t.Errorf("%q: %t, %v, asked %q", text, got, err, &asked)
		}
	}
}

// A person who approves sees the nights at the place of the window, and not only here.
func TestWhatIsToBeApprovedIsShownAtItsPlace(t *testing.T) {
	t.Parallel()
	from := time.Date(2027, 3, 1, 0, 0, 0, 0, time.UTC)
	p := preview{window: api.WindowInfo{Name: "w", For: "customer acme", Zone: "Europe/Zurich"},
		body: api.ApproveRequest{From: jobs.Time{Time: from}, Until: jobs.Time{Time: from.AddDate(0, 1, 0)}}}
	for i := range 9 {
		start := from.AddDate(0, 0, 7*i-7)
		o := api.Occurrence{Start: jobs.Time{Time: start}, End: jobs.Time{Time: start.Add(time.Hour)},
			LocalStart: "Mon " + start.Format("01-02"), LocalEnd: "then", Seconds: 3600}
		if p.has(o) {
			p.covers = append(p.covers, o)
		}
	}
	want := `w, for customer acme: 5 occurrences from Mon 2027-03-01 01:00 +01:00 to Thu 2027-04-01 02:00 +02:00 (Europe/Zurich)
  Mon 03-01 to then, 1h00m
  Mon 03-08 to then, 1h00m
  Mon 03-15 to then, 1h00m
  Mon 03-22 to then, 1h00m
  Mon 03-29 to then, 1h00m
`
	if got := p.text(); got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}

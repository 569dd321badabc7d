package estate

import (
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/jobs"
)

// past returns samples of a zone, one each 15 seconds with a hole of two minutes.
func past(looks int, apart time.Duration) api.ZoneDepth {
	at := time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC)
	z := api.ZoneDepth{Zone: "default"}
	for i := range looks {
		if i == 4 {
			at = at.Add(2 * time.Minute)
		}
		z.Samples = append(z.Samples, api.DepthSample{At: jobs.Time{Time: at}, Queued: int64(10 * i), Due: int64(i)})
		at = at.Add(apart)
	}
	return z
}

// A picture has a hole where nobody looked, and the table says there that it is not known.
func TestADepthHasAHoleWhereNobodyLooked(t *testing.T) {
	t.Parallel()
	f := depthOf(api.DepthList{}, past(8, 15*time.Second))
	if f.most != 70 || f.holes() != 2 || len(f.spans) != 4 {
		t.Fatalf("%+v", f)
	}
	line, area := f.line(queuedOf, false), f.line(dueOf, true)
	if strings.Count(line, "M") != 2 || strings.Count(area, "Z") != 2 {
		t.Errorf("line %q, area %q", line, area)
	}
	if text := (span{}).cell(0); text != "not known" {
		t.Errorf("a span in which nobody looked: %q", text)
	}
	if words := f.words(); !strings.HasSuffix(words, "at most 70 jobs queued and 7 due; last 70 queued and 7 due") {
		t.Errorf("%q", words)
	}
}

// A picture and its table stay small, however long the server has looked.
func TestADepthOfADayIsSmall(t *testing.T) {
	t.Parallel()
	for _, looks := range []int{1, 11, 60, 100, 280} {
		f := depthOf(api.DepthList{}, past(looks, 5*time.Minute))
		if len(f.spans) > 98 || len(f.rows) > 26 || len(f.line(queuedOf, false)) > 2000 {
			t.Errorf("%d looks: %d spans, %d rows", looks, len(f.spans), len(f.rows))
		}
	}
}

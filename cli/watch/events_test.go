package watch

import (
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/apitest"
)

func TestEventLine(t *testing.T) {
	t.Parallel()
	h := jobs.Happening{Zone: "default", Event: "end", Object: apitest.AJob,
		Detail: map[string]any{"outcome": "failed\x1b"},
		At:     jobs.Time{Time: time.Date(2026, 11, 21, 10, 0, 0, 5e6, time.UTC)}}
	want := "10:00:00.005Z  default    end       0wcy7y2fb2:fw001  {\"outcome\":\"failed\\u001b\"}\n"
	if got := EventLine(h); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if got := EventLine(jobs.Happening{Event: "start"}); got != "-             start\n" {
		t.Errorf("an event without an object: %q", got)
	}
}

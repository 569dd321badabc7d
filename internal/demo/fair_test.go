package demo

import (
	"strings"
	"testing"
	"time"

	"muster/jobs"
	"muster/testkit/apitest"
)

func TestServedLast(t *testing.T) {
	t.Parallel()
	zero := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	at := func(s int) jobs.Time { return jobs.Time{Time: zero.Add(time.Duration(s) * time.Second)} }
	// One slot: big at 0, small at 2 and 4, big at 6 to 20.
	var big []jobs.JobInfo
	for _, s := range []int{0, 6, 8, 10, 12, 14, 16, 18, 20} {
		big = append(big, jobs.JobInfo{Started: at(s), Finished: at(s + 2)})
	}
	small := []jobs.JobInfo{{Started: at(4), Finished: at(6)}, {Started: at(2), Finished: at(4)}, {}}
	got, longest := timesOf(small)
	if want := (demoTimes{at(2), at(4), at(6)}); got != want || longest != 2*time.Second {
		t.Errorf("%+v, %s", got, longest)
	}
	small = small[:2]
	if got, want := servedLast(big, small), (demoTimes{at(18), at(20), at(22)}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := servedLast(nil, []jobs.JobInfo{{}}); got != (demoTimes{}) {
		t.Errorf("of a job that never started: %+v", got)
	}

	story := Story{Tasks: []demoTask{{Submitted: at(0)}, {Submitted: at(1)}}, Fifo: servedLast(big, small)}
	story.Tasks[1].demoTimes, _ = timesOf(small)
	words := fairWords(story)
	apitest.WantParts(t, "story", words, "started 1.0s to 3.0s after", "would have started after 17s to 19s",
		"and ended after 21s", "nothing was reordered")
	story.Reordered = jobs.Reordered{At: at(2), Moved: 10, Seconds: 0.1}
	if words := fairWords(story); !strings.Contains(words, "reordered: 10 jobs in 0.1s") {
		t.Error(words)
	}
}

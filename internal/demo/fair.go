package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/cli"
	"muster/jobs"
)

// demoAfter is overload.after of the demo: with the default a small fleet would be done before
// anything is overdue.
const demoAfter = 2 * time.Second

// demoTimes holds the first and last starts and ends of a task's jobs.
type demoTimes struct {
	FirstStart jobs.Time `json:"first_start"`
	LastStart  jobs.Time `json:"last_start"`
	Finished   jobs.Time `json:"finished"`
}

// timesOf returns the times of jobs that have ended, and the duration of the longest.
func timesOf(list []jobs.JobInfo) (t demoTimes, longest time.Duration) {
	for _, j := range list {
		if j.Started.IsZero() {
			continue
		}
		if t.FirstStart.IsZero() || j.Started.Before(t.FirstStart.Time) {
			t.FirstStart = j.Started
		}
		if j.Started.After(t.LastStart.Time) {
			t.LastStart = j.Started
		}
		if j.Finished.After(t.Finished.Time) {
			t.Finished = j.Finished
		}
		longest = max(longest, j.Finished.Sub(j.Started.Time))
	}
	return t, longest
}

// servedLast returns the times of small if all jobs of big had come first: the starts happen at the
// same instants, and small gets the last ones.
func servedLast(big, small []jobs.JobInfo) demoTimes {
	var starts []jobs.Time
	for _, j := range slices.Concat(big, small) {
		if !j.Started.IsZero() {
			starts = append(starts, j.Started)
		}
	}
	slices.SortFunc(starts, func(a, b jobs.Time) int { return a.Compare(b.Time) })
	if len(starts) < len(small) || len(small) == 0 {
		return demoTimes{}
	}
	_, longest := timesOf(small)
	last := starts[len(starts)-1]
	return demoTimes{FirstStart: starts[len(starts)-len(small)], LastStart: last,
		Finished: jobs.Time{Time: last.Add(longest)}}
}

// fairness compares the small task with and without the reordering.
func (st *stage) fairness(ctx context.Context, s *cli.Session, story *Story) error {
	lists := make([][]jobs.JobInfo, len(story.Tasks))
	for i := range story.Tasks {
		list, err := s.Jobs(ctx, story.Tasks[i].Task, "", "")
		if err != nil {
			return err
		}
		lists[i] = list
		story.Tasks[i].demoTimes, _ = timesOf(list)
	}
	story.Fifo = servedLast(lists[0], lists[1])
	zones, err := s.Zones(ctx)
	for _, z := range zones {
		if z.Reordered.At.After(story.Reordered.At.Time) {
			story.Reordered = z.Reordered
		}
	}
	return err
}

// fairWords describes the times of the small task, and the times that it would have had.
func fairWords(story Story) string {
	big, small := story.Tasks[0], story.Tasks[1]
	after := func(t jobs.Time) string { return cli.Span(max(t.Sub(small.Submitted.Time), 0)) }
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	say("bob came %s after alice. His jobs started %s to %s after his submit, and had ended after %s.",
		cli.Span(small.Submitted.Sub(big.Submitted.Time)), after(small.FirstStart),
		after(small.LastStart), after(small.Finished))
	say("First come, first served, they would have started after %s to %s, and ended after %s.",
		after(story.Fifo.FirstStart), after(story.Fifo.LastStart), after(story.Fifo.Finished))
	if r := story.Reordered; !r.At.IsZero() {
		say("A job was %s late, so the queue was reordered: %s in %s. (overload.after is %s in the",
			demoAfter, cli.Count(r.Moved, "job"), cli.Span(cli.Seconds(r.Seconds)), demoAfter)
		say("demo, and %s by default.)", jobs.DefaultOverload().After)
		return b.String()
	}
	say("No job started more than %s late, so nothing was reordered:", demoAfter)
	say("try more hosts, or fewer slots.")
	return b.String()
}

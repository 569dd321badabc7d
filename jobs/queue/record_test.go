package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/jobs/model"
	"muster/jobs/queue"
)

func TestReadRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       model.Job
		err        string
	}{
		{name: "never taken"},
		{name: "runs", text: "running 0 1 1760 2 1 0 0 3 1700 0 1710 n1/1\n{\"a\":1}\nbob: no\n",
			want: model.Job{State: jobs.Running, Token: 1760, Counts: model.Counts{Attempt: 2, Tries: 1},
				Step: 3, Saved: `{"a":1}`, Due: 1700, Node: "n1/1", Started: 1710, Cancel: "bob: no"}},
		{name: "deferred", text: "deferred 0 0 1760 0 0 0 0 0 1900 200 0 n1/1 q5@1760w freeze: no work\n\n\n",
			want: model.Job{State: jobs.Deferred, Token: 1760, Due: 1900, Later: 200 * time.Microsecond,
				Node: "n1/1", Spent: "q5@1760w", Why: "freeze: no work"}},
		{name: "tried again, by a worker that says no times",
			text: "retry 0 0 1760 1 1 0 0 0 1900 0 1 n1/1 - no route\n\n\n",
			want: model.Job{State: jobs.Retry, Token: 1760, Counts: model.Counts{Attempt: 1, Tries: 1},
				Due: 1900, Started: 1, Node: "n1/1", Why: "no route"}},
		{name: "its own time", text: "queued 0 0 0 0 0 0 0 0 1900 200 0 \n\n\n",
			want: model.Job{State: jobs.Queued, Due: 1900, Later: 200 * time.Microsecond}},
		{name: "ended with its times",
			text: "ended 0 0 9 1 0 0 0 0 7 0 9 n/1\n\n\n1800 succeeded - 0+q2c5r17 ",
			want: model.Job{State: jobs.Ended, Token: 9, Counts: model.Counts{Attempt: 1}, Due: 7, Started: 9,
				Node: "n/1", End: model.End{At: 1800, Outcome: jobs.Succeeded, Exit: "0", Spent: "q2c5r17"}}},
		{name: "ended with its times, without an exit code",
			text: "ended 0 0 9 1 0 0 0 0 7 0 9 n/1\n\n\n1800 unknown operator -+q2 it + was lost",
			want: model.Job{State: jobs.Ended, Token: 9, Counts: model.Counts{Attempt: 1}, Due: 7, Started: 9,
				Node: "n/1", End: model.End{At: 1800, Outcome: jobs.Unknown, Class: jobs.ClassOperator,
					Error: "it + was lost", Spent: "q2"}}},
		{name: "ended by itself", text: "ended 1 0 0 0 0 0 0 0 0 0 0 \n\n\n1800 failed user 3 it says no\nread on",
			want: model.Job{State: jobs.Ended, Lost: true, End: model.End{At: 1800,
				Outcome: jobs.Failed, Class: jobs.ClassUser, Exit: "3", Error: "it says no",
				Note: "read on"}}},
		{name: "ended without words", text: "ended 0 0 0 0 0 0 0 0 0 0 0 \n\n\n1800 expired - - ",
			want: model.Job{State: jobs.Ended, End: model.End{At: 1800, Outcome: jobs.Expired}}},
		{name: "too few words", text: "ended 0 0\n\n\n", err: "want four lines, and 13 words"},
		{name: "too few lines", text: "running 0 0 1 1 0 0 0 0 0 0 0 n/1", err: "want four lines"},
		{name: "no number", text: "running 0 0 x 1 0 0 0 0 0 0 0 n/1\n\n\n", err: `"x"`},
		{name: "half an end", text: "ended 0 0 1 1 0 0 0 0 0 0 0 n/1\n\n\n18 failed", err: "lacks words"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := queue.ReadJob(c.text)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add("running 0 1760 2 1 0 0 3 1700 0 1710 n1/1\n{}\nbob\n")
	f.Add("ended 0 0 0 0 0 0 0 0 0 0 \n\n\n1800 failed user 3 it says no")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := queue.ReadJob(text); err != nil && !strings.Contains(err.Error(), "record of a job") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

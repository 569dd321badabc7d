package queue_test

import (
	"strings"
	"testing"

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

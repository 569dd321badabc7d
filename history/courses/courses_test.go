package courses_test

import (
	"os"
	"testing"
	"time"

	"muster/history"
	"muster/history/courses"
	"muster/jobs"
	"muster/testkit/sqltest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	sqltest.Done()
	os.Exit(code)
}

// Courses of jobs of one task are read whole, and nothing of other jobs is.
func TestCoursesAreThoseOfTheirJobs(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]history.Config{"sqlite": sqltest.SQLite(t),
		"postgres": sqltest.Shared(t).Config(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sqltest.Ready(t, cfg)
			const task, other = "0wcy7y2fb2", "0wcy7y2fb3"
			at := time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)
			b := history.Batch{Zone: "eu", Last: "9-0", Entries: 9}
			for i, e := range []jobs.Happening{
				{Event: "commit", Object: task},
				{Event: "take", Object: task + ":fw001", Detail: map[string]any{"node": "n1", "attempt": 1.}},
				{Event: "take", Object: other + ":fw001", Detail: map[string]any{"node": "n9", "attempt": 1.}},
				{Event: "take", Object: task + ":fw003", Detail: map[string]any{"node": "n9", "attempt": 1.}},
				{Event: "step", Object: task + ":fw001", Detail: map[string]any{"step": 1.}},
				{Event: "retry", Object: task + ":fw001", Detail: map[string]any{"at": 0.}},
				{Event: "take", Object: task + ":fw001", Detail: map[string]any{"node": "n2", "attempt": 2.}},
				{Event: "commit", Object: task},
				{Event: "commit", Object: other},
			} {
				e.Zone, e.ID, e.At = "eu", "9-0", jobs.Time{Time: at.Add(time.Duration(i) * time.Second)}
				b.Events = append(b.Events, e)
			}
			if _, err := s.Put(t.Context(), b, at); err != nil {
				t.Fatal(err)
			}
			got, err := courses.Of(t.Context(), s, task, []string{"fw001", "fw002"})
			c := got["fw001"]
			if err != nil || len(got) != 1 || len(c.Attempts) != 2 || len(c.Steps) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if a := c.Attempts[0]; a.Node != "n1" || a.How != "retry" || a.Started.Time != at.Add(time.Second) ||
				a.Ended.Time != at.Add(5*time.Second) || !c.Attempts[1].Ended.IsZero() {
				t.Errorf("attempts %+v", c.Attempts)
			}
			if b := c.Steps[0]; b.Step != 1 || b.At.Time != at.Add(4*time.Second) {
				t.Errorf("step %+v", b)
			}
			if when, err := courses.Committed(t.Context(), s, task); err != nil || when != at.Add(7*time.Second) {
				t.Errorf("committed at %s, %v", when, err)
			}
			if when, err := courses.Committed(t.Context(), s, "0wcy7y2fb4"); err != nil || !when.IsZero() {
				t.Errorf("another task was committed at %s, %v", when, err)
			}
			if none, err := courses.Of(t.Context(), s, task, nil); err != nil || len(none) != 0 {
				t.Errorf("of no hosts: %v, %v", none, err)
			}
		})
	}
}

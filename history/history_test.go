package history_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

func TestWhatIsStoredIsFoundAgain(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		code := 3
		good, bad := job(taskID(1), "fw001", jobs.Succeeded, 9*time.Second), job(taskID(1), "fw002", jobs.Failed, time.Second)
		bad.ExitCode, bad.Class, bad.Error, bad.Note = &code, jobs.Class("user"), "no\x00 \xff such file", "attached"
		said := jobs.Output{{At: 0, Data: []byte("hello\x00\n")}, {At: 100, Data: []byte("end\n")}}
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{task(taskID(1), 2)}, Ended: []api.PastJob{good, bad},
			Outputs: map[jobs.ID]jobs.Output{good.ID: said},
			Events:  []jobs.Happening{happened(1, "take", good.ID, map[string]any{"node": "n1/1", "attempt": 1.0})}})

		list, next, err := s.Jobs(t.Context(), history.Filter{}, "", 10)
		if err != nil || next != "" {
			t.Fatal(list, next, err)
		}
		bad.Error = "no\uFFFD \uFFFD such file"
		good.Asked, bad.Asked = &api.Asked{On: "all"}, &api.Asked{On: "all"}
		if diff := cmp.Diff([]api.PastJob{good, bad}, list); diff != "" {
			t.Errorf("jobs: %s", diff)
		}
		output, err := s.Output(t.Context(), good.ID)
		if want := "hello\x00\n\n[93 bytes left out]\nend\n"; err != nil || string(output) != want {
			t.Errorf("output %q, %v, want %q", output, err, want)
		}
		if said, err := s.Output(t.Context(), bad.ID); err != nil || said != nil {
			t.Errorf("a host that said nothing: %q, %v", said, err)
		}
		if _, err := s.Job(t.Context(), jobs.NewID(taskID(9), "x")); !errors.Is(err, history.ErrNotFound) {
			t.Errorf("a job that is not there: %v", err)
		}
	})
}

func TestOutputIsCapped(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		cfg.OutputMax = 1000
		s := ready(t, cfg)
		j := job(taskID(1), "fw001", jobs.Succeeded, time.Second)
		text := strings.Repeat("a", 5000) + strings.Repeat("z", 5000)
		store(t, s, history.Batch{Ended: []api.PastJob{j},
			Outputs: map[jobs.ID]jobs.Output{j.ID: {{Data: []byte(text)}}}})
		said, err := s.Output(t.Context(), j.ID)
		want := text[:500] + "\n[9000 bytes left out]\n" + text[9500:]
		if err != nil || string(said) != want {
			t.Errorf("output %q, %v", said, err)
		}
	})
}

func TestABatchIsStoredOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		first := history.Batch{Zone: "default", Last: "5-0", Events: []jobs.Happening{happened(5, "put", taskID(1), nil)}}
		if _, err := s.Put(t.Context(), first, begin); err != nil {
			t.Fatal(err)
		}
		for _, again := range []history.Batch{first, {Zone: "default", After: "4-0", Last: "6-0", Events: first.Events}} {
			if _, err := s.Put(t.Context(), again, begin); !errors.Is(err, history.ErrMoved) {
				t.Errorf("after %q again: %v, want %v", again.After, err, history.ErrMoved)
			}
		}
		p, err := s.Position(t.Context(), "default")
		if err != nil || p.Last != "5-0" || p.Events != 1 {
			t.Errorf("position %+v, %v", p, err)
		}
	})
}

// Two historians who both believe in their duty read the same stream.
func TestTwoHistoriansStoreEachEventOnce(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		const entries = 60
		var all sync.WaitGroup
		for who := range 2 {
			s := ready(t, cfg)
			all.Go(func() {
				for {
					p, err := s.Position(t.Context(), "default")
					if err != nil {
						t.Error(err)
						return
					}
					at := 0
					fmt.Sscanf(p.Last, "%d-0", &at)
					if at == entries {
						return
					}
					b := history.Batch{Zone: "default", After: p.Last, Last: fmt.Sprintf("%d-0", at+1),
						Ended:  []api.PastJob{job(taskID(1), fmt.Sprintf("h%d", at+1), jobs.Succeeded, time.Second)},
						Events: []jobs.Happening{happened(at+1, "end", jobs.NewID(taskID(1), fmt.Sprintf("h%d", at+1)), nil)}}
					if _, err := s.Put(t.Context(), b, begin); err != nil && !errors.Is(err, history.ErrMoved) &&
						!strings.Contains(err.Error(), "SQLITE_BUSY") { // the other one was slow
						t.Errorf("historian %d: %v", who, err)
						return
					}
				}
			})
		}
		all.Wait()
		s := ready(t, cfg)
		p, err := s.Position(t.Context(), "default")
		if err != nil || p.Events != entries {
			t.Errorf("%d events are stored (%v), want %d", p.Events, err, entries)
		}
		e, err := s.Estimates(t.Context())
		if err != nil || len(e) != 1 || e[0].N != 10 {
			t.Errorf("estimates %+v, %v", e, err)
		}
		if n := count(t, s, history.Filter{}); n != entries {
			t.Errorf("%d jobs, want %d", n, entries)
		}
	})
}

// count walks over all pages.
func count(t *testing.T, s *history.Store, f history.Filter) int {
	t.Helper()
	seen := map[jobs.ID]bool{}
	for cursor := ""; ; {
		list, next, err := s.Jobs(t.Context(), f, cursor, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range list {
			if seen[j.ID] {
				t.Fatalf("%s is on two pages", j.ID)
			}
			seen[j.ID] = true
		}
		if next == "" {
			return len(seen)
		}
		cursor = next
	}
}

func TestFiltersAndPagesFindAllAndOnlyThose(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		var list []api.PastJob
		outcomes := jobs.Outcomes()
		for i := range 300 {
			j := job(taskID(i%5), fmt.Sprintf("h%03d", i), outcomes[i%len(outcomes)], time.Duration(i/9)*time.Second)
			j.Customer, j.Operator, j.Runbook = fmt.Sprint("c", i%3), fmt.Sprint("o", i%2), fmt.Sprint("r", i%4)
			list = append(list, j)
		}
		store(t, s, history.Batch{Ended: list})
		for _, c := range []struct {
			f    history.Filter
			mine func(api.PastJob) bool
		}{
			{history.Filter{}, func(api.PastJob) bool { return true }},
			{history.Filter{Customer: "c1"}, func(j api.PastJob) bool { return j.Customer == "c1" }},
			{history.Filter{Host: "h007"}, func(j api.PastJob) bool { return j.Host == "h007" }},
			{history.Filter{Operator: "o1", Runbook: "r3"}, func(j api.PastJob) bool {
				return j.Operator == "o1" && j.Runbook == "r3"
			}},
			{history.Filter{Outcome: jobs.Failed}, func(j api.PastJob) bool { return j.Outcome == jobs.Failed }},
			{history.Filter{Outcome: jobs.Succeeded}, func(j api.PastJob) bool { return j.Outcome == jobs.Succeeded }},
			{history.Filter{Task: taskID(3)}, func(j api.PastJob) bool { return j.ID.Task() == taskID(3) }},
			{history.Filter{From: begin.Add(10 * time.Second), To: begin.Add(20 * time.Second)}, func(j api.PastJob) bool {
				return !j.Finished.Before(begin.Add(10*time.Second)) && j.Finished.Before(begin.Add(20*time.Second))
			}},
			{history.Filter{Customer: "nobody"}, func(api.PastJob) bool { return false }},
		} {
			want := 0
			for _, j := range list {
				if c.mine(j) {
					want++
				}
			}
			if n := count(t, s, c.f); n != want {
				t.Errorf("%+v: %d jobs, want %d", c.f, n, want)
			}
		}
		page, _, err := s.Jobs(t.Context(), history.Filter{}, "", 100)
		last := func(a, b api.PastJob) int { return b.Finished.Compare(a.Finished.Time) }
		if err != nil || !slices.IsSortedFunc(page, last) {
			t.Errorf("the last one does not come first: %v", err)
		}
		_, _, err = s.Jobs(t.Context(), history.Filter{}, "1; drop table jobs", 1)
		if !errors.Is(err, history.ErrCursor) {
			t.Errorf("a wrong cursor: %v", err)
		}
	})
}

func TestAReportAddsUp(t *testing.T) {
	t.Parallel()
	ended := []api.PastJob{job(taskID(1), "a", jobs.Succeeded, 1), job(taskID(1), "b", jobs.Succeeded, 1),
		job(taskID(1), "c", jobs.Failed, 1)}
	running := job(taskID(1), "d", "", 1)
	running.State = jobs.Running
	odd := job(taskID(1), "e", "no such outcome", 1)
	open := task(taskID(1), 5)
	open.State = jobs.TaskRunning
	for _, c := range []struct {
		task jobs.TaskInfo
		list []api.PastJob
		want string
	}{
		{task(taskID(1), 3), ended, "succeeded 2, failed 1"},
		{task(taskID(1), 7), ended, "succeeded 2, failed 1, not known 4"},
		{open, ended, "succeeded 2, failed 1, not ended 2"},
		{open, append(slices.Clone(ended), running), "succeeded 2, failed 1, running 1, not ended 1"},
		{task(taskID(1), 4), append(slices.Clone(ended), odd), "succeeded 2, failed 1, not known 1"},
		{task(taskID(1), 1), ended, "succeeded 2, failed 1"},
		{jobs.TaskInfo{Total: 2}, nil, "not known 2"},
	} {
		r := history.NewReport(c.task, c.list)
		var parts []string
		sum := 0
		for _, p := range r.Parts {
			parts = append(parts, fmt.Sprintf("%s %d", p.Name, p.Hosts))
			sum += p.Hosts
		}
		if got := strings.Join(parts, ", "); got != c.want || sum != r.Total {
			t.Errorf("%d of %d: %s (sum %d of %d), want %s", len(c.list), c.task.Total, got, sum, r.Total, c.want)
		}
	}
}

// A job that was stopped on its host is not one of those that never ran.
func TestAReportTellsStoppedJobsFromThoseThatNeverRan(t *testing.T) {
	t.Parallel()
	const far = "had begun: the error says how far it came"
	for _, o := range []jobs.Outcome{jobs.Cancelled, jobs.Expired, jobs.Superseded, jobs.Skipped} {
		stopped, never := job(taskID(1), "a", o, 2*time.Second), job(taskID(1), "b", o, 0)
		never.Started = jobs.Time{}
		for want, list := range map[string][]api.PastJob{"never ran": {never}, far: {stopped},
			"1 never ran, 1 " + far: {stopped, never}} {
			r := history.NewReport(task(taskID(1), len(list)), list)
			if len(r.Parts) != 1 || r.Parts[0].Means != want {
				t.Errorf("%s, %d jobs: %+v, want %q", o, len(list), r.Parts, want)
			}
		}
	}
}

func TestEstimatesComeFromTheLastTenSuccesses(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		for i := 1; i <= 14; i++ {
			j := job(taskID(i), "fw001", jobs.Succeeded, time.Duration(i)*time.Second)
			again := job(taskID(i), "fw002", jobs.Succeeded, time.Hour)
			failed := job(taskID(i), "fw003", jobs.Failed, time.Hour)
			never := job(taskID(i), "fw004", jobs.Succeeded, time.Hour)
			again.Tries, never.Started = 1, jobs.Time{}
			deferred := job(taskID(i), "vpn1", jobs.Succeeded, 24*time.Hour+time.Duration(i)*time.Second)
			deferred.Model, deferred.Due = "v1", at(24*time.Hour)
			store(t, s, history.Batch{Ended: []api.PastJob{j, again, failed, never, deferred}})
		}
		want := []history.Estimate{{history.Kind{"exec", "v1", "acme"}, 9 * time.Second, 13 * time.Second, 10},
			{history.Kind{"exec", "x200", "acme"}, 9 * time.Second, 13 * time.Second, 10}}
		got, err := s.Estimates(t.Context())
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

func TestAttemptsAndStepsAreFollowedOverBatches(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		id := jobs.NewID(taskID(1), "fw001")
		take := func(n int, no float64) jobs.Happening {
			return happened(n, "take", id, map[string]any{"node": fmt.Sprint("n", n), "attempt": no})
		}
		store(t, s, history.Batch{Events: []jobs.Happening{take(1, 1),
			happened(2, "step", id, map[string]any{"step": 1.0})}})
		// The end of the first attempt is in another batch than its take.
		store(t, s, history.Batch{Events: []jobs.Happening{happened(3, "retry", id, nil), take(4, 2),
			happened(5, "lost", id, nil)}})
		store(t, s, history.Batch{Events: []jobs.Happening{take(6, 3)}})
		store(t, s, history.Batch{Events: []jobs.Happening{happened(7, "defer", id, nil)}})
		j := job(taskID(1), "fw001", jobs.Succeeded, time.Second)
		j.Attempt = 3
		end := happened(9, "end", id, map[string]any{"outcome": "succeeded"})
		store(t, s, history.Batch{Events: []jobs.Happening{take(8, 3), end}, Ended: []api.PastJob{j}})
		got, err := s.Attempts(t.Context(), id)
		var text []string
		for _, a := range got {
			text = append(text, fmt.Sprintf("%d %s %s", a.Attempt, a.Node, a.How))
		}
		if got, want := strings.Join(text, ", "), "1 n1 retry, 2 n4 lost, 3 n8 succeeded"; err != nil || got != want {
			t.Errorf("attempts %s (%v), want %s", got, err, want)
		}
	})
}

func TestRetentionForgetsWholeTasksAndNothingElse(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		old, young := task(taskID(1), 2500), task(taskID(2), 1)
		young.Submitted, young.Finished = at(48*time.Hour), at(49*time.Hour)
		var list []api.PastJob
		var events []jobs.Happening
		said := map[jobs.ID]jobs.Output{}
		for i := range 2500 {
			j := job(taskID(1), fmt.Sprintf("h%04d", i), jobs.Succeeded, time.Minute)
			said[j.ID] = jobs.Output{{Data: []byte("x")}}
			list = append(list, j)
			events = append(events, happened(i, "take", j.ID, map[string]any{"attempt": 1.0}),
				happened(i, "end", j.ID, nil), happened(i, "step", j.ID, map[string]any{"step": 1.0}))
		}
		list = append(list, job(taskID(2), "h1", jobs.Succeeded, 49*time.Hour),
			job(taskID(3), "orphan", jobs.Succeeded, time.Minute))
		events = append(events, happened(1, "freeze", "zone", nil),
			happened(1, "take", list[2500].ID, nil))
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{old, young}, Ended: list, Outputs: said, Events: events,
			Gap: &api.Gap{Zone: "default", Entries: 3}})
		batches := 0
		for ; ; batches++ {
			n, err := s.Forget(t.Context(), begin.Add(24*time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
			if n > 4000 {
				t.Errorf("a batch of %d rows: others wait for it", n)
			}
		}
		if batches < 4 {
			t.Errorf("%d batches, want more", batches)
		}
		rows, err := s.Rows(t.Context())
		want := map[string]int64{"tasks": 1, "jobs": 1, "attempts": 0, "steps": 0, "events": 1,
			"output": 0, "gaps": 0, "plans": 0}
		if diff := cmp.Diff(want, rows); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	})
}

// A task that has not ended may still be at work: a rollover takes weeks, and history may be kept
// for a day.
func TestRetentionLeavesWhatHasNotEnded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		open, silent := task(taskID(1), 2), task(taskID(2), 1)
		open.State, open.Finished = jobs.TaskRunning, jobs.Time{}
		silent.Finished = jobs.Time{} // it ended, and nobody knows when
		store(t, s, history.Batch{Tasks: []jobs.TaskInfo{open, silent},
			Ended: []api.PastJob{job(taskID(1), "h1", jobs.Succeeded, time.Minute)}})
		all := func(before time.Time) {
			t.Helper()
			for n := int64(1); n > 0; {
				var err error
				if n, err = s.Forget(t.Context(), before); err != nil {
					t.Fatal(err)
				}
			}
		}
		all(begin.Add(60 * 24 * time.Hour))
		rows, err := s.Rows(t.Context())
		if err != nil || rows["tasks"] != 2 || rows["jobs"] != 1 {
			t.Errorf("after 60 days there are %v, %v: want all", rows, err)
		}
		all(begin.Add(71 * 24 * time.Hour))
		if rows, err = s.Rows(t.Context()); err != nil || rows["tasks"] != 0 || rows["jobs"] != 0 {
			t.Errorf("after 71 days there are %v, %v: want none", rows, err)
		}
	})
}

func TestConfigIsRefusedWithWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "history.url",
		"sqlite://relative.db":             "want sqlite:///path",
		"sqlite:///":                       "want sqlite:///path",
		"mysql://x":                        "want sqlite:///path",
		"postgres://a:secret@h:port\x7f/d": "want sqlite:///path",
	} {
		c := history.DefaultConfig()
		c.URL = text
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	c := history.Config{URL: "sqlite:///x", Keep: time.Minute, OutputMax: -1}
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two mistakes: %v", err)
	}
}

package spans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/api"
	"muster/jobs"
	"muster/jobs/trace"
	"muster/server/spans"
)

const (
	task   = jobs.TaskID("0wcy7y2fb2")
	caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
)

var zero = time.Date(2026, 11, 29, 1, 0, 0, 0, time.UTC)

// at is some seconds after zero.
func at(s float64) jobs.Time {
	return jobs.Time{Time: zero.Add(time.Duration(s * float64(time.Second)))}
}

// lines shows spans: from, to, name, and the name of the span that each is in.
func lines(list []spans.Span) string {
	names := map[trace.SpanID]string{}
	for _, s := range list {
		names[s.ID] = s.Name
	}
	var b strings.Builder
	for _, s := range list {
		fmt.Fprintf(&b, "%g-%g %s", s.Start.Sub(zero).Seconds(), s.End.Sub(zero).Seconds(), s.Name)
		for _, a := range s.Attributes {
			if a.Key == "muster.step" {
				fmt.Fprintf(&b, " %v", a.Value)
			}
		}
		if in := names[s.Parent]; in != "" {
			b.WriteString(" in " + in)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func job(o jobs.Outcome, n int, when ...jobs.Time) spans.Job {
	due, started, finished := when[0], when[1], when[2]
	id := jobs.NewID(task, "fw001")
	return spans.Job{Past: api.PastJob{JobInfo: jobs.JobInfo{ID: id, Host: "fw001", State: jobs.Ended,
		Outcome: o, Due: due, Started: started, Finished: finished, Attempt: n}, Runbook: "reload",
		Zone: "eu"}, Submit: trace.Submit(task, caller)}
}

// A job that waits for weeks looks thousands of times: its trace stays small, and says so.
func TestAJobOfManyAttemptsHasFewSpans(t *testing.T) {
	t.Parallel()
	j := job(jobs.Succeeded, 5000, at(0), at(0), at(50_000))
	for i := range 5000 {
		from := float64(10 * i)
		j.Course.Attempts = append(j.Course.Attempts, api.Attempt{Attempt: i + 1, Node: "n1", Started: at(from),
			Ended: at(from + 1), How: "wait"})
		j.Course.Steps = append(j.Course.Steps, api.StepBegun{At: at(from + 0.5), Step: 1})
	}
	list := spans.OfJob(j)
	if len(list) > 1000 {
		t.Errorf("%d spans", len(list))
	}
	left := int64(0)
	for _, a := range list[0].Attributes {
		if a.Key == "muster.attempts_left_out" {
			left, _ = a.Value.(int64)
		}
	}
	if left != 4900 {
		t.Errorf("%d attempts are said to be left out, want 4900", left)
	}
	if last := list[len(list)-1]; last.End != at(50_000).Time {
		t.Errorf("the last span ends at %s", last.End)
	}
}

// An end that no node has proven is not shown as proven.
func TestAnEndThatIsNotProvenHasNoStatus(t *testing.T) {
	t.Parallel()
	j := job(jobs.Succeeded, 1, at(0), at(1), at(2))
	j.Past.Proof = api.NotProven
	if s := spans.OfJob(j)[0]; s.Status != spans.Unset {
		t.Errorf("status %v", s.Status)
	}
}

func TestTheSpansOfAJobAreItsTimes(t *testing.T) {
	t.Parallel()
	one := job(jobs.Succeeded, 1, at(0), at(10), at(20))
	one.Past.Times = jobs.Times{jobs.InWindow: 6, jobs.Queueing: 4, jobs.Connecting: 2, jobs.Acting: 8}
	one.Course = api.Course{Attempts: []api.Attempt{{Attempt: 1, Node: "n1", Started: at(10), Ended: at(20),
		How: "succeeded"}}, Steps: []api.StepBegun{{Step: 1, At: at(15)}}}

	again := job(jobs.Failed, 3, at(30), at(10), at(40))
	again.Past.Times = jobs.Times{jobs.Queueing: 10, jobs.Connecting: 3}
	again.Course = api.Course{Attempts: []api.Attempt{{Attempt: 1, Started: at(10), Ended: at(12), How: "retry"},
		{Attempt: 2, Started: at(17), Ended: at(20), How: "verify"}, {Attempt: 3, Started: at(30), Ended: at(40),
			How: "failed"}}, Steps: []api.StepBegun{{Step: 1, At: at(18)}, {Step: 2, At: at(35)}}}

	lost := job(jobs.Unknown, 2, at(0), at(5), at(9))
	lost.Course = api.Course{Attempts: []api.Attempt{{Attempt: 1, Started: at(5), How: ""},
		{Attempt: 2, Started: at(7), Ended: at(9), How: "unknown"}}}

	never := job(jobs.Expired, 0, at(0), jobs.Time{}, at(8))
	never.Past.Times = jobs.Times{jobs.InWindow: 5}

	away := job(jobs.Succeeded, 1, at(2), at(3), at(4)) // history cannot be read

	for name, c := range map[string]struct {
		of   spans.Job
		want string
	}{
		"once": {one, `0-20 job reload
0-6 window in job reload
6-10 queued in job reload
10-20 attempt in job reload
10-12 connect in attempt
12-15 step 0 in attempt
15-20 step 1 in attempt
`},
		"again": {again, `10-40 job reload
10-12 attempt in job reload
12-17 pause in job reload
17-20 attempt in job reload
18-20 step 1 in attempt
20-30 verify in job reload
30-40 attempt in job reload
35-40 step 2 in attempt
`},
		"lost": {lost, `0-9 job reload
0-5 queued in job reload
5-7 attempt in job reload
7-9 attempt in job reload
`},
		"never": {never, `0-8 job reload
0-5 window in job reload
5-8 queued in job reload
`},
		"history is away": {away, `2-4 job reload
2-3 queued in job reload
3-4 attempt in job reload
3-4 step 0 in attempt
`},
	} {
		if got := lines(spans.OfJob(c.of)); got != c.want {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.want)
		}
	}
	first := spans.OfJob(one)[0]
	if first.Trace != trace.OfJob(one.Past.ID) || first.Link.Trace.String() != caller[3:35] ||
		first.Link.Span != trace.Submit(task, "").Span || first.Kind != spans.Consumer {
		t.Errorf("the job is %+v, linked to %v", first, first.Link)
	}
}

func TestTheStatusTellsUnknownFromFailed(t *testing.T) {
	t.Parallel()
	for _, o := range append(jobs.Outcomes(), "a word of a later muster") {
		want, kind := spans.Error, string(o)
		switch o {
		case jobs.Succeeded:
			want, kind = spans.OK, ""
		case jobs.Cancelled, jobs.Superseded, jobs.Skipped:
			want, kind = spans.Unset, ""
		}
		s := spans.OfJob(job(o, 1, at(0), at(1), at(2)))[0]
		got := ""
		for _, a := range s.Attributes {
			if a.Key == "error.type" {
				got = a.Value.(string)
			}
		}
		if s.Status != want || got != kind || spans.IsBad(o) != (want == spans.Error) {
			t.Errorf("%s: status %d, error.type %q; want %d, %q", o, s.Status, got, want, kind)
		}
		if o == jobs.Unknown && strings.Contains(s.Message, "fail") {
			t.Errorf("unknown says %q", s.Message)
		}
	}
}

func TestASubmitIsInTheTraceOfItsCaller(t *testing.T) {
	t.Parallel()
	info := jobs.TaskInfo{Task: task, Runbook: "reload", Total: 3, Outcomes: jobs.Counts{jobs.Succeeded: 2,
		jobs.Unknown: 1}, Span: jobs.Span{Submitted: at(0), Finished: at(60)}}
	list := spans.OfTask(spans.Task{Info: info, Traceparent: caller, Committed: at(2).Time})
	if got, want := lines(list), "0-2 submit reload\n0-60 task reload in submit reload\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	send, whole := list[0], list[1]
	if send.Trace.String() != caller[3:35] || send.Parent.String() != caller[36:52] ||
		send.Kind != spans.Producer || whole.Trace != send.Trace {
		t.Errorf("submit %+v", send)
	}
	if whole.Status != spans.Error || whole.Message != "it is not known what happened" {
		t.Errorf("task %+v", whole)
	}
	own := spans.OfTask(spans.Task{Info: info})[0]
	if own.Parent != (trace.SpanID{}) || own.Trace == send.Trace || own.ID != send.ID {
		t.Errorf("without a caller it is %+v", own)
	}
	info.Outcomes = jobs.Counts{jobs.Succeeded: 2, jobs.Skipped: 1}
	if s := spans.OfTask(spans.Task{Info: info})[1]; s.Status != spans.Unset {
		t.Errorf("a task with a job that was skipped has status %d", s.Status)
	}
}

// Clocks differ, events are missing, and a node may write any time: no span ends before it begins
// or leaves its job, and no two have one name.
func TestSpansStayWithinTheirJob(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		when := rapid.Custom(func(t *rapid.T) jobs.Time {
			if rapid.IntRange(0, 4).Draw(t, "unset") == 0 {
				return jobs.Time{}
			}
			return at(rapid.Float64Range(-100, 100).Draw(t, "at"))
		})
		o := rapid.SampledFrom(jobs.Outcomes()).Draw(t, "outcome")
		j := job(o, rapid.IntRange(0, 4).Draw(t, "attempt"), when.Draw(t, "due"), when.Draw(t, "started"), at(0))
		j.Past.Times = jobs.Times{jobs.InWindow: rapid.Float64Range(-9, 200).Draw(t, "window"),
			jobs.Connecting: rapid.Float64Range(-9, 200).Draw(t, "connecting")}
		for range rapid.IntRange(0, 5).Draw(t, "attempts") {
			j.Course.Attempts = append(j.Course.Attempts, api.Attempt{Attempt: rapid.IntRange(0, 9).Draw(t, "no"),
				Started: when.Draw(t, "from"), Ended: when.Draw(t, "to"), How: rapid.SampledFrom([]string{
					"retry", "verify", "defer", "lost", "failed", ""}).Draw(t, "how")})
		}
		for range rapid.IntRange(0, 5).Draw(t, "steps") {
			j.Course.Steps = append(j.Course.Steps, api.StepBegun{Step: rapid.IntRange(-1, 9).Draw(t, "step"),
				At: when.Draw(t, "step at")})
		}
		list := spans.OfJob(j)
		seen := map[trace.SpanID]bool{}
		for _, s := range list {
			if s.End.Before(s.Start) || s.Start.Before(list[0].Start) || s.End.After(list[0].End) || seen[s.ID] ||
				s.Trace != list[0].Trace {
				t.Fatalf("span %+v in\n%s", s, lines(list))
			}
			seen[s.ID] = true
		}
	})
}

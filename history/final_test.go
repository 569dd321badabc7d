package history_test

import (
	"fmt"
	"testing"
	"time"

	"muster/api"
	"muster/history"
	"muster/jobs"
)

// An end is final: a later event that contradicts it is stored as an event, and replaces nothing.
// Only an end that was unknown may be settled.
func TestAKnownEndIsNeverReplaced(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		for i, c := range []struct{ first, then, want jobs.Outcome }{
			{jobs.Succeeded, jobs.Unknown, jobs.Succeeded},
			{jobs.Failed, jobs.Succeeded, jobs.Failed},
			{jobs.Unknown, jobs.Succeeded, jobs.Succeeded},
			{jobs.Unknown, jobs.Unknown, jobs.Unknown},
		} {
			host := fmt.Sprintf("fw%03d", i)
			first, then := job(taskID(1), host, c.first, time.Second), job(taskID(1), host, c.then, 9*time.Second)
			said := func(text string) map[jobs.ID]jobs.Output {
				return map[jobs.ID]jobs.Output{first.ID: {{Data: []byte(text)}}}
			}
			store(t, s, history.Batch{Ended: []api.PastJob{first}, Outputs: said("first\n")})
			var told []history.Contradiction
			store(t, s, history.Batch{Ended: []api.PastJob{then}, Outputs: said("then\n"),
				Contradicted: func(c history.Contradiction) { told = append(told, c) }})
			kept, err := s.Job(t.Context(), first.ID)
			if err != nil || kept.Outcome != c.want {
				t.Errorf("%s, then %s: %s (%v), want %s", c.first, c.then, kept.Outcome, err, c.want)
			}
			output, err := s.Output(t.Context(), first.ID)
			stays := c.first != jobs.Unknown
			if err != nil || (string(output) == "first\n") != stays {
				t.Errorf("%s, then %s: output %q, %v", c.first, c.then, output, err)
			}
			if stays != (len(told) == 1) || stays && (told[0].First != c.first || told[0].Job.Outcome != c.then) {
				t.Errorf("%s, then %s: told of %+v", c.first, c.then, told)
			}
			if err := s.Reconcile(t.Context(), task(taskID(1), 1), []api.PastJob{then}, said("then\n")); err != nil {
				t.Fatal(err)
			}
			if kept, err := s.Job(t.Context(), first.ID); err != nil || kept.Outcome != c.want {
				t.Errorf("%s, then %s reconciled: %s (%v)", c.first, c.then, kept.Outcome, err)
			}
		}
	})
}

// The jobs that a zone learns about after a loss: jobs without an end, each with its last attempt
// that did something.
func TestAttemptsWithoutAnEndAreFound(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		id := taskID(1)
		take := func(at int, host string, no float64) jobs.Happening {
			return happened(at, "take", jobs.NewID(id, host), map[string]any{"node": "n1/2", "attempt": no})
		}
		store(t, s, history.Batch{Ended: []api.PastJob{job(id, "ended", jobs.Succeeded, time.Second)},
			Events: []jobs.Happening{
				take(1, "ended", 1), happened(2, "end", jobs.NewID(id, "ended"), map[string]any{"outcome": "succeeded"}),
				take(3, "twice", 1), happened(4, "retry", jobs.NewID(id, "twice"), nil), take(5, "twice", 2),
				take(6, "runs", 1),
				take(7, "back", 1), happened(8, "back", jobs.NewID(id, "back"), nil),
				take(9, "window", 1), happened(10, "defer", jobs.NewID(id, "window"), nil),
			}})
		found := map[string]int{}
		for after := ""; ; {
			page, err := s.Begun(t.Context(), id, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			after = page[0].Host
			found[after] = page[0].Attempt
			if page[0].State != jobs.Lost || page[0].Node != "n1/2" {
				t.Errorf("%+v", page[0])
			}
		}
		if fmt.Sprint(found) != "map[runs:1 twice:2]" {
			t.Errorf("found %v", found)
		}
	})
}

// A job that ended unknown and was settled since is, in one batch or in two, what its event
// says, and so is its last attempt; when it ended does not change.
func TestASettledJobIsWhatItsHostSaid(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		for i, batches := range []int{1, 2} {
			first := job(taskID(i+1), "fw001", jobs.Unknown, time.Second)
			then := first
			then.Outcome, then.Note = jobs.Succeeded, "settled by the record of its host"
			end := float64(jobs.MicrosOf(first.Finished.Time))
			events := []jobs.Happening{
				happened(10*i+1, "take", first.ID, map[string]any{"node": "n1/2", "attempt": 1.0}),
				happened(10*i+2, "end", first.ID, map[string]any{"outcome": "unknown"}),
				happened(10*i+3, "settle", first.ID, map[string]any{"outcome": "succeeded", "ended": end}),
			}
			if needs := history.NeedsOf(events); len(needs.Ended) != 1 || needs.Ended[0].Event != "settle" ||
				history.EndOf(needs.Ended[0]).Finished.UnixMicro() != first.Finished.UnixMicro() {
				t.Errorf("needs %+v", needs)
			}
			first.Attempt, then.Attempt = 1, 1
			if batches == 1 {
				store(t, s, history.Batch{Ended: []api.PastJob{then}, Events: events})
			} else {
				store(t, s, history.Batch{Ended: []api.PastJob{first}, Events: events[:2]})
				store(t, s, history.Batch{Ended: []api.PastJob{then}, Events: events[2:]})
			}
			kept, err := s.Job(t.Context(), first.ID)
			if err != nil || kept.Outcome != jobs.Succeeded || kept.Note != then.Note {
				t.Errorf("%d batches: %+v, %v", batches, kept, err)
			}
			tries, err := s.Attempts(t.Context(), first.ID)
			if err != nil || len(tries) != 1 || tries[0].How != "succeeded" ||
				tries[0].Ended.UnixMicro() != first.Finished.UnixMicro() {
				t.Errorf("%d batches: attempts %+v, %v", batches, tries, err)
			}
		}
	})
}

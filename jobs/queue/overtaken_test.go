package queue_test

import (
	"testing"

	"muster/jobs"
	"muster/testkit/queuetest"
)

// An order that reaches a zone after a later one changes nothing there, and its answer names the
// order that stands, not "it was not paused" or "it is resumed".
func TestAnOrderThatWasOvertakenSaysWhatStands(t *testing.T) {
	type give func(note string) (jobs.Switched, error)
	for what, orders := range map[string]func(*testing.T, *queuetest.Queue, jobs.TaskID) (script string, on, off give){
		"everything": func(t *testing.T, q *queuetest.Queue, _ jobs.TaskID) (string, give, give) {
			return "lift", func(note string) (jobs.Switched, error) { return q.Halt(t.Context(), note) },
				func(note string) (jobs.Switched, error) { return q.Lift(t.Context(), note) }
		},
		"zone": func(t *testing.T, q *queuetest.Queue, _ jobs.TaskID) (string, give, give) {
			return "resume-zone", func(note string) (jobs.Switched, error) { return q.PauseZone(t.Context(), zone, note) },
				func(note string) (jobs.Switched, error) { return q.ResumeZone(t.Context(), zone, note) }
		},
		"customer": func(t *testing.T, q *queuetest.Queue, _ jobs.TaskID) (string, give, give) {
			return "resume-customer",
				func(note string) (jobs.Switched, error) { return q.PauseCustomer(t.Context(), "acme", note) },
				func(note string) (jobs.Switched, error) { return q.ResumeCustomer(t.Context(), "acme", note) }
		},
		"task": func(t *testing.T, q *queuetest.Queue, id jobs.TaskID) (string, give, give) {
			return string(id), func(note string) (jobs.Switched, error) { return q.Pause(t.Context(), id, note) },
				func(note string) (jobs.Switched, error) { return q.Resume(t.Context(), id, note) }
		},
	} {
		t.Run(what, func(t *testing.T) {
			eachRedis(t, func(t *testing.T, w world) {
				q, behind := open(t, w, "1"), open(t, w, "")
				id := submit(t, q, spec(), 1)
				script, on, off := orders(t, q, id)
				_, _, late := orders(t, behind, id)
				if _, err := on("alice: the first"); err != nil {
					t.Fatal(err)
				}
				behind.BeforeScript(script, func(n int) error {
					if n > 1 {
						return nil
					}
					if _, err := off("bob: over"); err != nil {
						return err
					}
					_, err := on("bob: the second")
					return err
				})
				got, err := late("alice: over")
				if err != nil || !got.Overtaken || got.Already || !got.Paused || got.Note != "bob: the second" {
					t.Errorf("the late order says %+v, %v", got, err)
				}
				if got, err = off("bob: over, too"); err != nil || got.Overtaken || got.Already || got.Paused {
					t.Errorf("the last order says %+v, %v", got, err)
				}
			})
		})
	}
}

// A halt that reaches a zone after its lift was ordered stops nothing, and says so.
func TestALateHaltSaysThatItWasLifted(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q, behind := open(t, w, "1"), open(t, w, "")
		submit(t, q, spec(), 1)
		behind.BeforeScript("halt", func(n int) error {
			if n > 1 {
				return nil
			}
			_, err := q.Lift(t.Context(), "bob: over")
			return err
		})
		got, err := behind.Halt(t.Context(), "alice: the first")
		if err != nil || !got.Overtaken || got.Already || got.Paused {
			t.Errorf("the late halt says %+v, %v", got, err)
		}
		one(t, step(t, q, "1", 1))
	})
}

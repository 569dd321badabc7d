package queue_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/jobs/queue"
	"muster/windows"
)

func TestTimetable(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		table, err := q.Timetable(t.Context())
		if err != nil || table.Version != 0 {
			t.Fatalf("at first: %v, %v", table, err)
		}
		table.Files = []windows.File{{Name: "w.yaml", Content: "windows: []\n"}}
		e := jobs.Alert{Event: "windows-applied", Object: "w.yaml", Detail: map[string]any{"by": "alice"}}
		v, err := q.SetTimetable(t.Context(), table, e)
		if err != nil || v != 1 {
			t.Fatalf("version %d, %v", v, err)
		}
		if _, err := q.SetTimetable(t.Context(), table, e); !errors.Is(err, queue.ErrChanged) {
			t.Errorf("a change of what was changed meanwhile: %v", err)
		}
		got, err := q.Timetable(t.Context())
		table.Version, table.Mark = 1, got.Mark
		if d := cmp.Diff(table, got); d != "" || err != nil || got.Mark == "" {
			t.Error(d, err)
		}
		if m, err := q.TimetableMark(t.Context()); m != got.Mark || err != nil {
			t.Errorf("mark %v, %v", m, err)
		}
		list, _, err := q.Events(t.Context(), "hub", "", 10, 0)
		if err != nil || len(list) != 1 || list[0].Event != "windows-applied" || list[0].Object != "w.yaml" {
			t.Errorf("events %v, %v", list, err)
		}
	})
}

// Redis lost its last writes, and gives their version to another timetable: whoever read the lost
// one must notice, and may not change the other by it.
func TestTwoTimetablesOfOneVersionHaveTwoMarks(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		e := jobs.Alert{Event: "windows-applied", Object: "w.yaml", Detail: map[string]any{"by": "alice"}}
		set := func(name string) windows.Timetable {
			t.Helper()
			table := windows.Timetable{Files: []windows.File{{Name: name, Content: "windows: []\n"}}}
			if _, err := q.SetTimetable(t.Context(), table, e); err != nil {
				t.Fatal(err)
			}
			got, err := q.Timetable(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		lost := set("lost.yaml")
		q.Redis().Del(t.Context(), "muster:{hub}:windows")
		now := set("now.yaml")
		a, err := q.Agreed(t.Context())
		x, failed := q.Excerpts(t.Context(), []windows.Scope{{}})
		if err != nil || failed != nil || a.Mark != now.Mark || x.Mark != now.Mark {
			t.Fatalf("workers read %v and %v, want %v; %v, %v", a.Mark, x.Mark, now.Mark, err, failed)
		}
		if lost.Version != now.Version || lost.Mark == now.Mark {
			t.Errorf("marks %v and %v: want one version and two stamps", lost.Mark, now.Mark)
		}
		if _, err := q.SetTimetable(t.Context(), lost, e); !errors.Is(err, queue.ErrChanged) {
			t.Errorf("a change of the lost one: %v", err)
		}
	})
}

// A server notes beside the table, at any moment, that it has adjusted the appointments: that does
// not count as a change by somebody else.
func TestATimetableIsSetWhileAServerNotesThatItHasLooked(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		noted := make(chan error, 1)
		go func() {
			for i := range int64(500) {
				if err := q.SetMovedFor(t.Context(), i); err != nil {
					noted <- err
					return
				}
			}
			noted <- nil
		}()
		var table windows.Timetable
		for {
			v, err := q.SetTimetable(t.Context(), table, jobs.Alert{Event: "windows-applied", Object: "w.yaml"})
			if err != nil {
				t.Error(err)
			}
			table.Version = max(v, table.Version)
			select {
			case err := <-noted:
				if err != nil || table.Version == 0 {
					t.Error(table.Version, err)
				}
				return
			default:
			}
		}
	})
}

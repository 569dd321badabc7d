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
		table.Version = 1
		if d := cmp.Diff(table, got); d != "" || err != nil {
			t.Error(d, err)
		}
		if v, err := q.TimetableVersion(t.Context()); v != 1 || err != nil {
			t.Errorf("version %d, %v", v, err)
		}
		list, _, err := q.Events(t.Context(), "hub", "", 10, 0)
		if err != nil || len(list) != 1 || list[0].Event != "windows-applied" || list[0].Object != "w.yaml" {
			t.Errorf("events %v, %v", list, err)
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

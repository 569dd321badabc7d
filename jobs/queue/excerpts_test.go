package queue_test

import (
	"encoding/json"
	"testing"

	"muster/jobs"
	"muster/testkit/redistest"
	"muster/windows"
)

// A muster that writes no excerpts sets the timetable: until a server has written them, workers
// read its texts.
func TestExcerptsOfAnOtherVersionAreNotRead(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		table := windows.Timetable{Files: []windows.File{{Name: "w.yaml", Content: "windows:\n" +
			"- {name: a, customer: acme, zone: UTC, start: '0 2 * * *', length: 1h, approval: none}\n"}}}
		v, err := q.SetTimetable(t.Context(), table, jobs.Alert{Event: "windows-applied", Object: "w"})
		if err != nil {
			t.Fatal(err)
		}
		scopes := []windows.Scope{{Level: windows.Customer, Name: "acme"}}
		windowsOf := func(want int64, excerpts bool) int {
			t.Helper()
			x, err := q.Excerpts(t.Context(), scopes)
			if err != nil || x.Version != want || (x.Table == nil) != excerpts {
				t.Fatalf("got %+v, %v", x, err)
			}
			if !excerpts {
				return len(x.Table.Files)
			}
			return len(x.Parts[0].Windows)
		}
		if n := windowsOf(v, true); n != 1 {
			t.Errorf("%d windows of acme, want 1", n)
		}
		table.Version, table.Files = v+1, nil
		text, err := json.Marshal(table)
		if err != nil {
			t.Fatal(err)
		}
		older := redistest.Raw(t, w.cfg, "hub").HSet(t.Context(), "muster:{hub}:windows", "version", v+1,
			"table", text)
		if err := older.Err(); err != nil {
			t.Fatal(err)
		}
		if n := windowsOf(v+1, false); n != 0 {
			t.Errorf("%d files, want none", n)
		}
		for _, want := range []bool{true, false} {
			if put, err := q.PutExcerpts(t.Context()); put != want || err != nil {
				t.Errorf("put %t, %v; want %t", put, err, want)
			}
		}
		if n := windowsOf(v+1, true); n != 0 {
			t.Errorf("%d windows of acme, want none", n)
		}
	})
}

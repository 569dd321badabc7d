package windows

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAChangedWindowMovesAppointments(t *testing.T) {
	t.Parallel()
	const day = "2026-11-"
	utc := func(text string) time.Time {
		if text == "" {
			return time.Time{}
		}
		at, err := time.Parse("2006-01-02 15:04", day+text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	window := func(hour, more string) string {
		return "windows:\n- {name: w, customer: acme, zone: UTC, start: \"0 " + hour +
			" * * *\", length: 2h, " + more + "}\n"
	}
	const freeze = "freezes:\n- {name: f, customer: acme, zone: UTC, from: 2026-11-24, until: 2026-11-25 12:00}\n"
	tests := []struct {
		name, file, at, want string // now is the 22nd, 12:00; the work takes an hour
		cancel               bool
		plain                bool // it needs no window
	}{
		{name: "nothing changed", file: window("2", "approval: none"), at: "23 02:00"},
		{name: "later in the night", file: window("4", "approval: none"), at: "23 02:00", want: "23 04:00"},
		{name: "earlier in the night", file: window("23", "approval: none"), at: "24 02:00", want: "22 23:00"},
		{name: "it is shorter", file: window("2", "cutoff: 90m, approval: none"), at: "23 03:00", want: "23 02:00"},
		{name: "another one before", file: window("2", "approval: none"), at: "25 02:00", want: "23 02:00"},
		{name: "one before, nearest", file: window("2", "on_change: nearest, approval: none"), at: "25 02:00"},
		{name: "nearest of two", file: window("4", "on_change: nearest, approval: none"),
			at: "25 02:00", want: "25 04:00"},
		{name: "nearest is before", file: window("23", "on_change: nearest, approval: none"),
			at: "25 02:00", want: "24 23:00"},
		{name: "cancel", file: window("4", "on_change: cancel, approval: none"), at: "25 02:00", cancel: true},
		{name: "cancel, and it is good", file: window("2", "on_change: cancel, approval: none"), at: "25 02:00"},
		{name: "cancel, and it is not approved", file: window("2", "on_change: cancel"), at: "25 02:00"},
		{name: "cancel, and it is frozen", file: window("2", "on_change: cancel, approval: none") + freeze,
			at: "25 02:00", want: "23 02:00"},
		{name: "not approved", file: window("4", "approval: required"), at: "25 02:00"},
		{name: "it is gone", file: strings.Replace(window("2", "approval: none"), "acme", "beta", 1), at: "25 02:00"},
		{name: "the freeze is lifted", file: window("2", "approval: none"), at: "22 18:00", want: "22 12:00", plain: true},
		{name: "the freeze is lifted, and there is a window with nearest",
			file: window("2", "on_change: nearest, approval: none"), at: "22 18:00", want: "22 12:00", plain: true},
		{name: "the freeze is lifted, and there is a window with cancel",
			file: window("2", "on_change: cancel, approval: none"), at: "22 18:00", want: "22 12:00", plain: true},
		{name: "frozen meanwhile", file: freeze, at: "25 02:00", want: "22 12:00", plain: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			book, err := Timetable{Files: []File{{Name: "w.yaml", Content: test.file}}}.Book()
			if err != nil {
				t.Fatal(err)
			}
			w := Waiting{Place: Place{Host: "fw1", Customer: "acme"}, At: utc(test.at),
				Work: Work{Window: !test.plain, Estimate: time.Hour}}
			got := book.Move(w, utc("22 12:00"))
			if !got.To.Equal(utc(test.want)) || (got.Cancel != "") != test.cancel {
				t.Errorf("got %+v, want %s, cancelled: %t", got, utc(test.want), test.cancel)
			}
		})
	}
}

// A new appointment is good, is kept by a second look, and is not in the past.
func TestAMoveIsToAGoodPlace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		hour := rapid.SampledFrom([]string{"0", "2", "13", "23"}).Draw(t, "hour")
		way := rapid.SampledFrom([]string{"next", "nearest", "cancel"}).Draw(t, "way")
		book, err := Timetable{Files: []File{{Name: "w", Content: "" +
			"windows:\n- {name: w, customer: acme, " +
			"zone: Europe/Zurich, start: \"30 " + hour +
			" * * *\", length: 3h, on_change: " + way + ", approval: none}\n"}}}.Book()
		if err != nil {
			t.Fatal(err)
		}
		now := time.Unix(rapid.Int64Range(1767225600, 1798761600).Draw(t, "now"), 0)
		w := Waiting{Place: Place{Host: "fw1", Customer: "acme"},
			At:   now.Add(time.Duration(rapid.Int64Range(0, 5e5).Draw(t, "at")) * time.Second),
			Work: Work{Window: true, Estimate: time.Duration(rapid.Int64Range(1, 10000).Draw(t, "takes")) * time.Second}}
		got := book.Move(w, now)
		if got.To.IsZero() {
			return
		}
		if got.To.Before(now) || !book.Admit(w.Place, got.To, w.Work).OK {
			t.Fatalf("moved from %s to %s at %s", w.At, got.To, now)
		}
		w.At = got.To
		if again := book.Move(w, now); again != (Moved{}) {
			t.Fatalf("moved to %s, and then to %+v", got.To, again)
		}
	})
}

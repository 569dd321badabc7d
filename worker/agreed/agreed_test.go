package agreed_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"muster/jobs"
	"muster/windows"
	"muster/worker/agreed"
)

// oneTable answers with a timetable, and with pretended time.
type oneTable struct {
	table windows.Timetable
	clock time.Duration
}

func (o *oneTable) Agreed(context.Context) (jobs.Agreed, error) {
	return jobs.Agreed{Version: o.table.Version, Mark: o.table.Mark,
		Now: jobs.MicrosOf(time.Unix(1_800_000_000, 0).Add(o.clock))}, nil
}

func (o *oneTable) Excerpts(context.Context, []windows.Scope) (jobs.Excerpts, error) {
	table := o.table
	return jobs.Excerpts{Version: table.Version, Mark: table.Mark, Table: &table}, nil
}

func (o *oneTable) Estimate(context.Context, string) (jobs.Estimate, bool, error) {
	return jobs.Estimate{}, false, nil
}

func (o *oneTable) Alert(context.Context, string, jobs.Alert) error { return nil }

// Redis lost the version that the worker has read, and gave its number to another timetable, in
// which the host is frozen: by the number alone the worker would go by the lost one for ever.
func TestATimetableOfTheSameVersionAndAnotherStampIsReadAnew(t *testing.T) {
	place := windows.Place{Host: "fw1"}
	o := &oneTable{}
	a := agreed.New(o, func() time.Duration { return o.clock })
	frozen := func() bool {
		t.Helper()
		r := a.Current(t.Context(), place)
		if r.Err != nil || r.Book == nil {
			t.Fatalf("the timetable is not known: %v", r.Err)
		}
		_, _, is := r.Book.Frozen(place, r.Now)
		return is
	}
	for i, want := range []bool{false, true, false} {
		o.table = windows.Timetable{Version: 1, Mark: "1." + strconv.Itoa(i)}
		if want {
			o.table.Freezes = []windows.FreezeOrder{{Name: "f", Level: "host", Of: "fw1", Reason: "r", By: "alice",
				From: time.Unix(1_700_000_000, 0)}}
		}
		if got := frozen(); got != want {
			t.Errorf("timetable %d: frozen is %v, want %v", i, got, want)
		}
		o.clock += 1500 * time.Millisecond
	}
}

package queue_test

import (
	"testing"
)

func TestAPageOfEventsTellsWhatWasTrimmedInFrontOfIt(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		if p, err := q.EventPage(t.Context(), "nowhere", "", 10); err != nil || p.Last != "" || p.Stream.Length != 0 {
			t.Errorf("a stream that is not there: %+v, %v", p, err)
		}
		submit(t, q, spec(), 3)
		all, err := q.EventPage(t.Context(), zone, "", 100)
		if err != nil || all.Entries < 2 || all.Stream.First == "" || all.Last != all.Stream.Last ||
			all.Stream.Length != all.Entries {
			t.Fatalf("all: %+v, %v", all, err)
		}
		one, err := q.EventPage(t.Context(), zone, all.Stream.First, 1)
		if err != nil || one.Entries != 1 || one.Last <= all.Stream.First {
			t.Errorf("behind the first: %+v, %v", one, err)
		}
		if err := q.TrimEvents(t.Context(), zone, all.Last); err != nil {
			t.Error(err)
		}
		if err := q.SaveEstimates(t.Context(), map[string]string{"exec|x|y": `{"n":1}`}); err != nil {
			t.Error(err)
		}
		rest, err := q.EventPage(t.Context(), zone, all.Last, 1)
		if err != nil || rest.Entries != 0 || rest.Stream.Last != all.Last {
			t.Errorf("after it was trimmed up to %s: %+v, %v", all.Last, rest, err)
		}
		if rest.Stream.Added >= 0 && rest.Stream.Added != all.Stream.Added {
			t.Errorf("%d were added, %d before", rest.Stream.Added, all.Stream.Added)
		}
	})
}

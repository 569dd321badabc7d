package queue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
)

func TestFacts(t *testing.T) {
	t.Parallel()
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "")
		at := jobs.Time{Time: time.Now().UTC().Truncate(time.Millisecond)}
		save := func(want int, list ...jobs.HostFacts) {
			t.Helper()
			if n, err := q.SaveFacts(t.Context(), list); err != nil || n != want {
				t.Errorf("%d were saved, %v, want %d", n, err, want)
			}
		}
		if list, mark, err := q.Facts(t.Context()); len(list) != 0 || mark != "" || err != nil {
			t.Errorf("at first: %v, %q, %v", list, mark, err)
		}
		var many []jobs.HostFacts
		for i := range 1200 {
			many = append(many, jobs.HostFacts{Host: fmt.Sprintf("fw%04d", i), At: at, Task: "0000000001",
				Inventory: "v1", Facts: map[string]string{"os": "debian"}})
		}
		save(1200, many...)
		mark, err := q.FactsMark(t.Context())
		if mark == "" || err != nil {
			t.Errorf("mark %q, %v", mark, err)
		}
		// Facts that are older or the same change nothing.
		older, newer := many[0], many[1]
		older.At.Time = at.Add(-time.Second)
		older.Facts = map[string]string{"os": "older"}
		newer.At.Time = at.Add(time.Second)
		newer.Facts = map[string]string{"os": "newer"}
		save(0, older, many[5])
		if again, err := q.FactsMark(t.Context()); again != mark || err != nil {
			t.Errorf("the mark has changed: %q, %v", again, err)
		}
		save(1, older, newer)
		if again, err := q.FactsMark(t.Context()); again == mark || err != nil {
			t.Errorf("the mark has not changed: %q, %v", again, err)
		}
		if err := q.ForgetFacts(t.Context(), []string{"fw0003", "nobody"}); err != nil {
			t.Error(err)
		}
		list, _, err := q.Facts(t.Context())
		if err != nil || len(list) != 1199 {
			t.Errorf("%d, %v", len(list), err)
		}
		if diff := cmp.Diff(newer, list["fw0001"]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if diff := cmp.Diff(many[0], list["fw0000"]); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

package queue_test

import (
	"strings"
	"testing"

	"muster/testkit/redistest"
)

// A failed read is an error even behind a key that is merely missing: the timetable is missing
// here, and then Redis refuses to read the pauses.
func TestAFailureInAPipelineIsNotTakenForEmpty(t *testing.T) {
	t.Parallel()
	w := world{cfg: redistest.StartServer(t).Config()}
	q := open(t, w, "")
	if _, err := q.AgreedState(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.raw(t).Set(t.Context(), "muster:{hub}:pauses", "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if s, err := q.AgreedState(t.Context()); err == nil || !strings.Contains(err.Error(), "WRONGTYPE") {
		t.Errorf("%+v, %v", s, err)
	}
}

package queue_test

import (
	"strings"
	"testing"

	"muster/testkit/redistest"
)

// What cannot be read is an error, also behind something that is merely not there: windows that
// nobody has made, and then pauses that Redis refuses to read.
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

package watch

import (
	"net/http"
	"testing"

	"muster/testkit/apitest"
)

// A caller learns that a task waits for a person; a task without gates costs no question.
func TestFollowSaysThatAPersonIsAwaited(t *testing.T) {
	t.Parallel()
	for _, gates := range []bool{true, false} {
		asked := 0
		s, _ := bubble(t, func(r *http.Request) (*http.Response, error) {
			asked++
			if r.URL.RequestURI() != "/v1/gates?task="+apitest.ATask {
				t.Errorf("asked %s", r.URL.RequestURI())
			}
			return said(200, `{"total": 2, "gates": [{"answer": "opened by al"}, {}]}`)
		})
		task, want := aTaskInfo(), ""
		if task.Gates = gates; gates {
			want = "1 job waits at a gate for a person: muster gate ls " + apitest.ATask
		}
		if got := standingWords(t.Context(), s.Client, task); got != want || (asked > 0) != gates {
			t.Errorf("gates %t: %q after %d questions, want %q", gates, got, asked, want)
		}
	}
}

package historian

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/testkit/queuetest"
	"muster/testkit/redistest"
)

// said are the events of the hub about history, in their order.
func said(t *testing.T, q *queuetest.Queue) (list []string) {
	t.Helper()
	page, err := q.EventPage(t.Context(), keys.HubZone, "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Events {
		if strings.HasPrefix(e.Event, "history-") {
			list = append(list, e.Event)
		}
	}
	return list
}

// A time without history is said when it begins and when it ends, each once, whoever has
// the duty then; trouble that passes at once is none.
func TestATimeWithoutHistoryIsSaidOnce(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]queue.Config{"redis-server": redistest.StartServer(t).Config(),
		"miniredis": func() queue.Config { _, cfg := redistest.StartMini(t); return cfg }()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q, err := queuetest.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer q.Close()
			begin, gone := time.Now().UTC().Truncate(time.Second), errors.New("connection refused")
			var first, second outage
			first.keep("eu", 17)
			for _, step := range []struct {
				by    *outage
				after time.Duration
				err   error
				want  string
			}{
				{&first, 0, gone, "[]"},
				{&first, 2 * time.Second, nil, "[]"},
				{&first, 10 * time.Second, gone, "[]"},
				{&first, 12 * time.Second, gone, "[]"},
				{&first, 13 * time.Second, errors.New("another word"), "[history-away]"},
				{&first, 30 * time.Second, gone, "[history-away]"},
				{&second, 40 * time.Second, gone, "[history-away]"}, // the first is dead
				{&second, 50 * time.Second, gone, "[history-away]"},
				{&second, 60 * time.Second, nil, "[history-away history-back]"},
				{&second, 61 * time.Second, nil, "[history-away history-back]"},
				{&second, 70 * time.Second, gone, "[history-away history-back]"},
				{&second, 80 * time.Second, gone, "[history-away history-back history-away]"},
			} {
				if err := step.by.note(t.Context(), q, step.err, begin.Add(step.after)); err != nil {
					t.Fatal(err)
				}
				if got := fmt.Sprint(said(t, q)); got != step.want {
					t.Fatalf("after %s: %s, want %s", step.after, got, step.want)
				}
				a, err := q.HistoryAway(t.Context())
				if err != nil || step.after < 60*time.Second && !a.Since.IsZero() &&
					(!a.Since.Equal(begin.Add(10*time.Second)) || a.Note != gone.Error() || a.Stored["eu"] != 17) {
					t.Errorf("after %s it stands as %+v, %v", step.after, a, err)
				}
			}
		})
	}
}

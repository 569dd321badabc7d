package history_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/history"
	"muster/jobs"
)

func TestWhatIsAgreedIsKeptByItsParts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, cfg history.Config) {
		s := ready(t, cfg)
		if kept, err := s.Agreed(t.Context()); err != nil || len(kept) != 0 {
			t.Fatalf("a new history keeps %v, %v", kept, err)
		}
		first := jobs.AgreedPart{Part: jobs.AgreedWindows, Mark: 3, Fields: map[string]string{"table": `{"files":[]}`}}
		halt := jobs.AgreedPart{Part: jobs.AgreedHalt, Fields: map[string]string{"id": "7", "state": "on"}}
		then := jobs.AgreedPart{Part: jobs.AgreedWindows, Mark: 4, Fields: map[string]string{}}
		later := begin.Add(time.Minute)
		if err := s.KeepAgreed(t.Context(), []jobs.AgreedPart{first, halt}, begin); err != nil {
			t.Fatal(err)
		}
		if err := s.KeepAgreed(t.Context(), []jobs.AgreedPart{then}, later); err != nil {
			t.Fatal(err)
		}
		halt.At, then.At = jobs.TimeOf(jobs.MicrosOf(begin)), jobs.TimeOf(jobs.MicrosOf(later))
		kept, err := s.Agreed(t.Context())
		want := map[string]jobs.AgreedPart{jobs.AgreedHalt: halt, jobs.AgreedWindows: then}
		if diff := cmp.Diff(want, kept); err != nil || diff != "" {
			t.Errorf("%v, %s", err, diff)
		}
	})
}

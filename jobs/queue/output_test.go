package queue_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/jobs"
	"muster/jobs/queue/read"
	"muster/testkit/queuetest"
)

// spoken returns output of a host as a speech.
func spoken(g jobs.Grant, end int64, data string, drop ...int64) jobs.Speech {
	return jobs.Speech{Job: g.Job, Token: g.Token, End: end, Data: []byte(data), Drop: drop}
}

func speak(t testing.TB, q *queuetest.Queue, list ...jobs.Speech) []jobs.ID {
	t.Helper()
	stale, err := q.Speak(t.Context(), zone, list)
	if err != nil {
		t.Fatal(err)
	}
	return stale
}

func outputOf(t testing.TB, q *queuetest.Queue, id jobs.ID) jobs.Output {
	t.Helper()
	out, err := q.Output(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func wantOutput(t testing.TB, when string, got jobs.Output, want ...jobs.Piece) {
	t.Helper()
	if diff := cmp.Diff(jobs.Output(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

func piece(at int64, text string) jobs.Piece { return jobs.Piece{At: at, Data: []byte(text)} }

func TestWhatARunningJobSaysIsHeard(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		submit(t, q, spec(), 1)
		g := one(t, step(t, q, "1", 1))
		heard := map[jobs.ID]*read.Heard{g.Job: {}}
		listen := func() jobs.Output {
			t.Helper()
			news, err := q.Listen(t.Context(), zone, heard)
			if err != nil {
				t.Fatal(err)
			}
			return news[g.Job]
		}
		wantOutput(t, "before it speaks", listen())
		if stale := speak(t, q, spoken(g, 5, "first")); len(stale) > 0 {
			t.Errorf("nobody listens to %v", stale)
		}
		wantOutput(t, "at first", listen(), piece(0, "first"))
		wantOutput(t, "again", listen())
		speak(t, q, spoken(g, 20, "third"), spoken(g, 26, " forth", 5))
		wantOutput(t, "with a gap", listen(), piece(15, "third"), piece(20, " forth"))
		wantOutput(t, "from its beginning, of which some was dropped", outputOf(t, q, g.Job),
			piece(15, "third"), piece(20, " forth"))

		// A try that failed keeps its output, and the next try follows it.
		r := jobs.Result{Job: g.Job, Token: g.Token, Kind: jobs.KindRetry,
			Said: jobs.Said{Output: []byte("first, forth, end"), Gap: jobs.Gap{At: 5, Left: 13}}}
		step(t, q, "1", 0, r)
		g2 := one(t, step(t, q, "1", 1))
		wantOutput(t, "at the end of the attempt", listen(), piece(26, " end"))
		wantOutput(t, "all of the attempt", outputOf(t, q, g.Job), piece(0, "first"), piece(18, ", forth, end"))
		if stale := speak(t, q, spoken(g, 40, "late")); !slices.Equal(stale, []jobs.ID{g.Job}) {
			t.Errorf("an attempt that is over spoke, and %v are stale", stale)
		}
		speak(t, q, spoken(g2, 4, "more"))
		wantOutput(t, "of the second attempt", listen(), piece(30, "more"))
		end := ended(g2, jobs.Succeeded)
		end.Output = []byte("more\nfine\n")
		step(t, q, "1", 0, end)
		wantOutput(t, "of its end", listen(), piece(34, "\nfine\n"))
		wantOutput(t, "all", outputOf(t, q, g.Job), piece(0, "first"), piece(18, ", forth, end"),
			piece(30, "more\nfine\n"))
		if stale := speak(t, q, spoken(g2, 99, "late")); !slices.Equal(stale, []jobs.ID{g.Job}) {
			t.Errorf("a job that has ended spoke, and %v are stale", stale)
		}
	})
}

// If a worker dies, the output that was received stays: it is all that is known.
func TestWhatADeadWorkersJobSaidStays(t *testing.T) {
	eachRedis(t, func(t *testing.T, w world) {
		q := open(t, w, "1")
		s := spec()
		s.Repeatable = true
		submit(t, q, s, 1)
		g := one(t, step(t, q, "1", 1))
		speak(t, q, spoken(g, 5, "first"))
		if lost, err := q.Lose(t.Context(), zone, jobs.Loss{Node: "n1", Slot: "1", Why: "killed"}); err != nil ||
			len(lost) != 1 {
			t.Fatalf("lost %v, %v", lost, err)
		}
		if stale := speak(t, q, spoken(g, 9, "late")); len(stale) != 1 {
			t.Error("a job that is lost spoke")
		}
		g2 := one(t, step(t, q, "2", 1))
		if g2.Mode != jobs.ModeLost {
			t.Fatalf("mode %s", g2.Mode)
		}
		r := ended(g2, jobs.Succeeded)
		r.Output = []byte("second")
		step(t, q, "2", 0, r)
		wantOutput(t, "all", outputOf(t, q, g.Job), piece(0, "first"), piece(5, "second"))
	})
}

package verdict

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/jobs"
)

func TestBounds(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, tt := range []struct{ timeout, left, want time.Duration }{
		{20 * s, 60 * s, 20 * s},
		{20 * s, 26 * s, 20 * s},
		{20 * s, 25*s + 900*time.Millisecond, 19 * s},
		{20 * s, 11 * s, 5 * s},
		{20 * s, 11*s - 1, 0},
		{2 * s, 12 * s, 2 * s},
		{2 * s, 10 * s, 0},
		{20 * s, -s, 0},
	} {
		got, ok := Bound(tt.timeout, tt.left)
		if got != tt.want || ok != (tt.want > 0) {
			t.Errorf("bound(%s, %s) = %s, %t, want %s", tt.timeout, tt.left, got, ok, tt.want)
		}
	}
}

// A step that starts within its lease is over on the host before the lock ends.
func TestNoStepOutlivesItsLock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := time.Duration(rapid.Int64Range(int64(BoundMin), int64(time.Hour)).Draw(t, "step"))
		late := time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "late"))
		timeout := jobs.AttemptTimeout(step)
		end := Deadline(0, timeout)
		b, ok := Bound(step, end-late)
		if ok && late+b+jobs.KillGrace+AnswerTime > end {
			t.Fatalf("bound %s after %s is over behind the deadline %s", b, late, end)
		}
		if late < jobs.ConnectAllowance-3*time.Second && (!ok || b != step) {
			t.Fatalf("the step was cut to %s of %s after only %s", b, step, late)
		}
		if end+jobs.Margin(timeout) > timeout {
			t.Fatalf("deadline %s is later than the margin before %s", end, timeout)
		}
	})
}

func TestPausesGrowToTwoSeconds(t *testing.T) {
	t.Parallel()
	var got []time.Duration
	for _, n := range []int{1, 2, 3, 6, 7, 8, 1000, 1 << 40} {
		got = append(got, Pause(n, 0).Round(time.Millisecond))
	}
	want := []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond,
		1600 * time.Millisecond, 2 * time.Second, 2 * time.Second, 2 * time.Second, 2 * time.Second}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if got := Pause(8, 1); got != 1500*time.Millisecond {
		t.Errorf("least pause = %s, want 1.5s", got)
	}
}

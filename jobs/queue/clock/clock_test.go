package clock_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/jobs"
	"muster/jobs/queue/clock"
)

// The bounds of a clock hold whatever sleeps there are, and a jump that is longer than the sleeps
// is noticed.
func TestAClockIsNeverWrong(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		offset := rapid.Int64Range(-1e12, 1e12).Draw(t, "offset")
		boot := time.Duration(rapid.Int64Range(0, 1e15).Draw(t, "boot"))
		var c clock.Clock
		for range rapid.IntRange(1, 20).Draw(t, "looks") {
			before := time.Duration(rapid.Int64Range(0, 200e9).Draw(t, "before"))
			after := time.Duration(rapid.Int64Range(0, 200e9).Draw(t, "after"))
			sent, read, came := boot, boot+before, boot+before+after
			boot = came
			seen := clock.Look(jobs.Micros(offset+read.Microseconds()), sent, came)
			if c.Jump(seen).Abs() > time.Microsecond {
				t.Fatalf("a sleep of %s and %s is a jump of %s", before, after, c.Jump(seen))
			}
			c = c.With(seen)
			if c.Lo > offset+1 || c.Hi < offset-1 {
				t.Fatalf("offset %d is not in %d to %d", offset, c.Lo, c.Hi)
			}
		}
		width := c.Width()
		jump := time.Duration(rapid.Int64Range(1, 1e6).Draw(t, "jump"))*time.Millisecond + 2*width
		if rapid.Bool().Draw(t, "back") {
			jump = -jump
		}
		seen := clock.Look(jobs.Micros(offset+boot.Microseconds()+jump.Microseconds()), boot, boot)
		if got := c.Jump(seen); got.Abs() > jump.Abs() || (jump-got).Abs() > width+time.Millisecond {
			t.Fatalf("a jump of %s is seen as %s", jump, got)
		}
	})
}

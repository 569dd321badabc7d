package proc_test

import (
	"errors"
	"testing"

	"muster/internal/proc"
)

// Whether this machine's clock is kept right is its own business: but it must be able to
// say so, without being root.
func TestTheKernelSaysWhetherItsClockIsKept(t *testing.T) {
	t.Parallel()
	if err := proc.ClockKept(); err != nil && !errors.Is(err, proc.ErrClock) {
		t.Error(err)
	}
}

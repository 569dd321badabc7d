package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// Boot is the time since the machine was started. Unlike Go's own clock it goes
// on while the machine sleeps, and all processes of a machine agree on it.
func Boot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		panic("CLOCK_BOOTTIME, which Linux has since 2.6.39: " + err.Error())
	}
	return time.Duration(ts.Nano())
}

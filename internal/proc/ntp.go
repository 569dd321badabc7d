package proc

import (
	"errors"
	"fmt"
	"syscall"
)

// The values with which adjtimex(2) reports a clock that nothing keeps right.
const (
	statusUnsynchronised = 0x40 // STA_UNSYNC
	stateError           = 5    // TIME_ERROR
)

// ErrClock is wrapped when nobody keeps the clock of this machine right.
var ErrClock = errors.New("the kernel says that its clock is not synchronised")

// ClockKept returns nil if the kernel takes the clock of this machine for kept right by
// NTP, and else why not. It says nothing about how right it is.
func ClockKept() error {
	var t syscall.Timex // no modes: it is only read
	state, err := syscall.Adjtimex(&t)
	switch {
	case err != nil:
		return fmt.Errorf("adjtimex: %w", err)
	case state == stateError || t.Status&statusUnsynchronised != 0:
		return ErrClock
	}
	return nil
}

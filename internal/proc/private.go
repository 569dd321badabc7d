package proc

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Private keeps the memory of this process, which has keys, to itself: a crash leaves no core, also
// where the system hands cores to a program, and other processes of the same user can neither trace
// it nor read its memory, its environment and its descriptors in /proc. Root still can. Exec ends
// that, so each binary calls it anew; the limit of cores passes on to children.
func Private() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("no core: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("no core, and no reader of our memory: %w", err)
	}
	return nil
}

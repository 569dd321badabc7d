package jobs

import (
	"fmt"
	"strings"
	"time"

	"muster/fleet"
	"muster/internal/wording"
)

// TaskID names a task: 10 characters of Crockford's base 32 in lower case, ordered by time. The
// first 7 count sixteenths of a second since 2025, the last 3 are random. The queue refuses a task
// whose id another task has.
type TaskID string

// ID names a job: "<task>:<host>". The id contains both, so listing, reordering and freezing the
// host list of a task need no look-up.
type ID string

const (
	taskIDLen   = 10
	digits      = "0123456789abcdefghjkmnpqrstvwxyz"
	chanceChars = 3
	tick        = time.Second / 16
)

// idEpoch is the zero of task ids. 35 bits of ticks last until 2093.
var idEpoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// NewTaskID makes the id of a task that is submitted at now. 15 bits of chance, which must be
// random, are used.
func NewTaskID(now time.Time, chance uint16) TaskID {
	n := uint64(now.Sub(idEpoch)/tick)<<(5*chanceChars) | uint64(chance&(1<<(5*chanceChars)-1))
	var b [taskIDLen]byte
	for i := taskIDLen - 1; i >= 0; i-- {
		b[i] = digits[n&31]
		n >>= 5
	}
	return TaskID(b[:])
}

// ParseTaskID checks that s is the id of a task.
func ParseTaskID(s string) (TaskID, error) {
	if len(s) != taskIDLen || strings.Trim(s, digits) != "" {
		return "", fmt.Errorf("task id %q: want %d characters of %s", wording.Clip(s), taskIDLen, digits)
	}
	return TaskID(s), nil
}

// NewID makes the id of the job of a task on a host.
func NewID(t TaskID, host string) ID { return ID(string(t) + ":" + host) }

// ParseID checks that s is the id of a job.
func ParseID(s string) (ID, error) {
	task, host, ok := strings.Cut(s, ":")
	if !ok {
		return "", fmt.Errorf("job id %q: want <task>:<host>", wording.Clip(s))
	}
	if _, err := ParseTaskID(task); err != nil {
		return "", fmt.Errorf("job id %q: %w", wording.Clip(s), err)
	}
	if err := fleet.CheckName(host); err != nil {
		return "", fmt.Errorf("job id %q: %w", wording.Clip(s), err)
	}
	return ID(s), nil
}

// Task returns the task of the job.
func (id ID) Task() TaskID {
	task, _, _ := strings.Cut(string(id), ":")
	return TaskID(task)
}

// Host returns the name of the job's host.
func (id ID) Host() string {
	_, host, _ := strings.Cut(string(id), ":")
	return host
}

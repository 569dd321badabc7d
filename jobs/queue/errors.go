package queue

import (
	"errors"
	"fmt"
	"strings"

	"muster/jobs"
)

// ErrOpen says that a job has not ended.
var ErrOpen = errors.New("it has not ended")

// ErrForgotten says that Redis does not know a job any more.
var ErrForgotten = errors.New("it is not known in Redis any more")

// The errors of PutBlob and RemoveBlob, beside those of package jobs.
var (
	// ErrBlobsFull is wrapped when there is no room for another content.
	ErrBlobsFull = errors.New("no room for another blob")

	// ErrBlobUsed is wrapped when tasks need the content that a caller wants to remove.
	ErrBlobUsed = errors.New("the blob is needed")

	// ErrBlobGoing is wrapped when a content is being removed at this moment.
	ErrBlobGoing = errors.New("the blob is being removed at this moment: put it again in a minute")
)

// ErrKeyAway is wrapped where the key of servers cannot be read: whether a server has vouched for
// something is not known at the moment.
var ErrKeyAway = errors.New("the key of servers cannot be read")

// ErrHeld says that a host is locked for a job that has not ended.
var ErrHeld = errors.New("it has not ended")

// Retries of an old task follow a rule that keeps two of them from doing a job again: only one task
// at a time may have a host of the old task.
//
// A retry claims its hosts before it puts its jobs, and seals the claim when all of them are put,
// before it commits. Another retry may take over a claim that is not sealed; the first task is then
// never sealed, and so never committed. In the transaction of the seal the task also goes on the
// list of commits, which any server completes. So one of two retries runs, even if their servers
// die.

// ErrRetried is wrapped by Submit's error when another task does a host's job again, or is
// being submitted to do so: Retries in package submit says which one.
var ErrRetried = errors.New("hosts of it are retried by another task")

// ErrSpent is wrapped when more jobs of a task have failed than its rule would allow after GoOn.
var ErrSpent = errors.New("its rule does not hold")

// The errors of callers that change schedules too late.
var (
	ErrStale   = errors.New("somebody else has changed it meanwhile")
	ErrDeposed = errors.New("another server has the duty now")
)

// ErrConflict is wrapped by Submit's error when another submit has the task id.
var ErrConflict = errors.New("another task has this id")

// ErrCancelled is wrapped at the end of a submit whose task was cancelled meanwhile.
var ErrCancelled = errors.New("the task was cancelled while it was submitted: submit a new one")

// ErrNotFound is wrapped when a task or job does not exist, or no longer exists.
var ErrNotFound = errors.New("not found")

// A NoJobError says that a task, which exists, has no job on some hosts. It wraps ErrNotFound.
type NoJobError struct {
	Task  jobs.TaskID
	Hosts []string
}

func (e *NoJobError) Error() string {
	return fmt.Sprintf("task %s has no job on %s", e.Task, strings.Join(e.Hosts, ", "))
}

// Unwrap returns ErrNotFound.
func (e *NoJobError) Unwrap() error { return ErrNotFound }

// ErrChanged is wrapped when somebody else has changed the timetable meanwhile:
// read it again.
var ErrChanged = errors.New("it was changed by somebody else meanwhile")

// ErrTokenName is wrapped when a token of this name exists already.
var ErrTokenName = errors.New("there is a token of this name")

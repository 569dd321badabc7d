package queue

import (
	"errors"
)

// ErrOpen says that a job has not ended.
var ErrOpen = errors.New("it has not ended")

// ErrForgotten says that Redis does not know a job any more.
var ErrForgotten = errors.New("it is not known in Redis any more")

// The errors of PutBlob and RemoveBlob, beside those of package jobs.
var (
	// ErrBlobsFull is wrapped when there is no room for another content.
	ErrBlobsFull = errors.New("no room for another blob")

	// ErrBlobUsed is wrapped when tasks need what is to be removed.
	ErrBlobUsed = errors.New("the blob is needed")

	// ErrBlobGoing is wrapped when a content is being removed at this moment.
	ErrBlobGoing = errors.New("the blob is being removed at this moment: put it again in a minute")
)

// ErrHeld says that a host is locked for a job that has not ended.
var ErrHeld = errors.New("it has not ended")

// This file is what keeps a job from being done again twice by the same order: which task
// has a host of an old task for itself.
//
// A retry claims its hosts before it puts its jobs, and seals the claim when all of them
// are put, before it commits. A claim that is not sealed may be taken over, and is then
// never sealed: such a task is never committed. With the seal the task comes on the list of
// commits that any server goes on with, in one transaction. So of two retries one runs,
// whatever becomes of their servers.

// ErrRetried is wrapped by Submit's error when another task does a host's job again, or is
// being submitted to do so: ask [Queue.Retries].
var ErrRetried = errors.New("hosts of it are retried by another task")

// ErrSpent is wrapped when a task is to go on of which more have failed than may.
var ErrSpent = errors.New("its rule does not hold")

// The answers of those who change schedules and come too late.
var (
	ErrStale   = errors.New("somebody else has changed it meanwhile")
	ErrDeposed = errors.New("another server has the duty now")
)

// ErrConflict is wrapped by Submit's error when another submit has the task id.
var ErrConflict = errors.New("another task has this id")

// ErrCancelled is wrapped at the end of a submit whose task was cancelled meanwhile.
var ErrCancelled = errors.New("the task was cancelled while it was submitted: submit a new one")

// ErrNotFound is wrapped when a task or job is not there, or no more.
var ErrNotFound = errors.New("not found")

// ErrChanged is wrapped when somebody else has changed the timetable meanwhile:
// read it again.
var ErrChanged = errors.New("it was changed by somebody else meanwhile")

// ErrTokenName is wrapped when a token of this name is there already.
var ErrTokenName = errors.New("there is a token of this name")

package jobs

import "fmt"

// State is the state of a job.
type State string

// The states (design §5). Held, Paused and Blocked are ways of being queued.
const (
	Held     State = "held"     // its task is not committed, or its wave is not open
	Queued   State = "queued"   // waits for its time or for a worker
	Paused   State = "paused"   // its task, customer or zone was paused
	Blocked  State = "blocked"  // another job holds what it needs
	Running  State = "running"  // an attempt holds the host
	Retry    State = "retry"    // an attempt failed in a way that allows a retry
	Waiting  State = "wait"     // released its worker until an appointment
	Verify   State = "verify"   // waits for the next probe after a disruptive step
	Deferred State = "deferred" // outside its window
	Lost     State = "lost"     // its worker is gone; its next worker finds out what happened
	Ended    State = "ended"    // has its outcome
)

// States lists all states in the order of a job's life.
func States() []State {
	return []State{Held, Queued, Paused, Blocked, Running, Retry, Waiting, Verify,
		Deferred, Lost, Ended}
}

// Event is an event in the life of a job.
type Event string

// The events.
const (
	EvCommit Event = "commit" // the submit of its task was completed
	EvTake   Event = "take"   // a worker took it
	EvBlock  Event = "block"  // a worker met it, but another job holds what it needs
	EvPause  Event = "pause"  // met or moved while paused
	EvResume Event = "resume" // moved back into the queue
	EvBack   Event = "back"   // returned before any step ran; no try counted
	EvRetry  Event = "retry"  // a try failed
	EvWait   Event = "wait"   // step `wait`
	EvVerify Event = "verify" // not up again yet after a disruptive step
	EvDefer  Event = "defer"  // outside its window; the attempt is not counted
	EvLose   Event = "lose"   // its worker was found to be gone
	EvRecall Event = "recall" // history knows of an attempt that Redis had forgotten
	EvEnd    Event = "end"    // got an outcome
	EvSettle Event = "settle" // its outcome was unknown, and its host reported how it ended
)

// Events lists all events.
func Events() []Event {
	return []Event{EvCommit, EvTake, EvBlock, EvPause, EvResume, EvBack, EvRetry, EvWait,
		EvVerify, EvDefer, EvLose, EvRecall, EvEnd, EvSettle}
}

type edge struct {
	from State
	ev   Event
}

// next is the one table of transitions. Tests hold the scripts of jobs/queue against it, and
// docs/LIFE_OF_A_JOB.md prints it.
var next = map[edge]State{
	{Held, EvCommit}: Queued,
	{Held, EvPause}:  Paused,
	{Held, EvRecall}: Lost,
	{Held, EvEnd}:    Ended,

	{Queued, EvTake}:   Running,
	{Queued, EvBlock}:  Blocked,
	{Queued, EvPause}:  Paused,
	{Queued, EvRecall}: Lost,
	{Queued, EvEnd}:    Ended,

	{Paused, EvResume}: Queued,
	{Paused, EvRecall}: Lost,
	{Paused, EvEnd}:    Ended,

	{Blocked, EvTake}:   Running,
	{Blocked, EvBlock}:  Blocked,
	{Blocked, EvPause}:  Paused,
	{Blocked, EvRecall}: Lost,
	{Blocked, EvEnd}:    Ended,

	{Running, EvBack}:   Queued,
	{Running, EvRetry}:  Retry,
	{Running, EvWait}:   Waiting,
	{Running, EvVerify}: Verify,
	{Running, EvDefer}:  Deferred,
	{Running, EvLose}:   Lost,
	{Running, EvTake}:   Running, // found lost and taken at the same moment, without a state between
	{Running, EvEnd}:    Ended,

	{Retry, EvTake}:   Running,
	{Retry, EvBlock}:  Blocked,
	{Retry, EvPause}:  Paused,
	{Retry, EvRecall}: Lost,
	{Retry, EvEnd}:    Ended,

	{Waiting, EvTake}:   Running,
	{Waiting, EvBlock}:  Blocked,
	{Waiting, EvPause}:  Paused,
	{Waiting, EvRecall}: Lost,
	{Waiting, EvEnd}:    Ended,

	{Verify, EvTake}:   Running,
	{Verify, EvRecall}: Lost,
	{Verify, EvEnd}:    Ended,

	{Deferred, EvTake}:   Running,
	{Deferred, EvBlock}:  Blocked,
	{Deferred, EvPause}:  Paused,
	{Deferred, EvRecall}: Lost,
	{Deferred, EvEnd}:    Ended,

	{Lost, EvTake}:    Running,
	{Ended, EvSettle}: Ended, // only from unknown, and only once

	{Lost, EvEnd}: Ended, // also by its own worker, if that was wrongly thought dead
}

// Next returns the state after e. It returns an error if e cannot happen in s.
func (s State) Next(e Event) (State, error) {
	if n, ok := next[edge{s, e}]; ok {
		return n, nil
	}
	return s, fmt.Errorf("job is %s: cannot %s", s, e)
}

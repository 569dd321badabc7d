package jobs

import "fmt"

// State is where a job stands in its life.
type State string

// The states (design §5). Held, Paused and Blocked are ways of being queued.
const (
	Held     State = "held"     // of a task that is not committed, or of a wave that is not open
	Queued   State = "queued"   // waits for its time or for a worker
	Paused   State = "paused"   // its task, customer or zone was paused
	Blocked  State = "blocked"  // what it needs is held by another job
	Running  State = "running"  // an attempt holds the host
	Retry    State = "retry"    // an attempt did not get through; there will be another
	Waiting  State = "wait"     // gave its worker back until an appointment
	Verify   State = "verify"   // waits for the next probe after a disruptive step
	Deferred State = "deferred" // outside its window
	Lost     State = "lost"     // its worker is gone; what happened must be found out
	Ended    State = "ended"    // has its outcome
)

// States lists all states in the order of a job's life.
func States() []State {
	return []State{Held, Queued, Paused, Blocked, Running, Retry, Waiting, Verify,
		Deferred, Lost, Ended}
}

// Event is what can happen to a job.
type Event string

// The events.
const (
	EvCommit Event = "commit" // the task was submitted as a whole
	EvTake   Event = "take"   // a worker took it
	EvBlock  Event = "block"  // a worker met it, but what it needs is taken
	EvPause  Event = "pause"  // met or moved while paused
	EvResume Event = "resume" // moved back
	EvBack   Event = "back"   // given back before anything was done; no try counted
	EvRetry  Event = "retry"  // did not get through
	EvWait   Event = "wait"   // step `wait`
	EvVerify Event = "verify" // not back yet after a disruptive step
	EvDefer  Event = "defer"  // outside its window; the attempt is given back
	EvLose   Event = "lose"   // its worker was recognised as gone
	EvRecall Event = "recall" // history knows of an attempt that Redis had forgotten
	EvEnd    Event = "end"    // got an outcome
	EvSettle Event = "settle" // ended unknown, and its host says how it ended
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

// next is the one table of states. The scripts of jobs/queue are tested
// against it, and docs/LIFE_OF_A_JOB.md prints it.
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
	{Running, EvTake}:   Running, // met as lost: the same moment, no state between
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

	{Lost, EvEnd}: Ended, // also by its own worker, when that was only thought dead
}

// Next is the state after e. It returns an error if e cannot happen in s.
func (s State) Next(e Event) (State, error) {
	if n, ok := next[edge{s, e}]; ok {
		return n, nil
	}
	return s, fmt.Errorf("job is %s: cannot %s", s, e)
}

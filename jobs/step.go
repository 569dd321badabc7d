package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"muster/fleet"
)

// Mode says why the queue hands a job out.
type Mode string

// The modes of a grant.
const (
	ModeFresh    Mode = "fresh"    // there was no attempt before
	ModeContinue Mode = "continue" // continue at Step
	ModeLost     Mode = "lost"     // the previous attempt vanished: find out what it did

	// The job has ended unknown: no step of it may run, and its host is asked how it ended. If
	// another job has locked the host, the worker may only read there.
	ModeAsk  Mode = "ask"
	ModePeek Mode = "peek"
)

// Looks reports whether the job has ended and is handed out only to ask its host. That is no
// attempt, and the worker must not send a result for it.
func (m Mode) Looks() bool { return m == ModeAsk || m == ModePeek }

// Grant is one job that the queue hands to a worker.
type Grant struct {
	Job      ID            `json:"job"`
	Token    Token         `json:"token"`
	Mode     Mode          `json:"mode"`
	Attempt  int           `json:"attempt"`         // counts every take
	Tries    int           `json:"tries"`           // failed tries so far
	Probes   int           `json:"probes"`          // verify probes so far
	Crashes  int           `json:"crashes"`         // workers that died with it
	Step     int           `json:"step"`            // index of the step to continue with
	Saved    string        `json:"saved"`           // JSON that steps saved; empty: nothing
	Spent    string        `json:"spent,omitempty"` // a Ledger of its time before this attempt
	Due      Micros        `json:"due"`             // since when it could have run
	LostNode string        `json:"lost_node,omitempty"`
	Timeout  time.Duration `json:"timeout"`        // the lock holds so long from the take
	Bound    time.Duration `json:"bound"`          // lost: the old attempt may act so long
	Host     *fleet.Host   `json:"host,omitempty"` // nil: not in the pinned inventory
}

// Kind is the kind of a worker's report about a job.
type Kind string

// The kinds of a result.
const (
	KindEnd    Kind = "end"    // the job has ended: Outcome, Class, ExitCode, Error
	KindRetry  Kind = "retry"  // a try failed; retry after Delay
	KindWait   Kind = "wait"   // due again after Delay, at Step; keeps the host unless Release
	KindVerify Kind = "verify" // a probe failed; due again after Delay; keeps the host
	KindDefer  Kind = "defer"  // not now; due at Until; without a step the attempt is not counted
	KindBack   Kind = "back"   // no step ran; the attempt is not counted
)

// Result is a worker's report about a job. It is late unless Token is that of the latest attempt.
type Result struct {
	Job      ID
	Token    Token
	Kind     Kind
	Outcome  Outcome
	Class    Class
	ExitCode *int
	Error    string        // one line for people, at most 300 bytes are kept
	Delay    time.Duration // retry, wait, verify, and defer without a known time
	Until    Micros        // defer: when it may begin; 0: nobody knows, and it may expire meanwhile
	Step     int           // wait, verify, retry: step to continue with
	Saved    string        // JSON that steps saved
	Release  bool          // wait: release the host; defer: the group too
	KeepLock bool          // end: the host stays locked to its bound
	Note     string        // end: a fact beside the outcome, such as "attached"; one line
	Said
}

// Said holds the output of a host, and the use of the job's time.
type Said struct {
	Spent  string // a Ledger of the job's time so far; empty: unchanged
	Output []byte // head and tail, bounded
	Gap    Gap    // the gap between them
	Runs   Runs   // as far as a later attempt or a reader may need them
}

// Step is one call of a worker: it reports about jobs, and asks for new ones. With Want 0 and no
// slot it is the sweep of a server.
type Step struct {
	Node    string // name of the node
	Slot    string // slot of the child on the node; one call at a time per slot
	Request string // id of this call; a repeated id gets the earlier answer
	Results []Result
	Want    int
	Known   []TaskID // tasks whose spec the caller has
}

// Status is the status in the reply to a step.
type Status string

// The statuses of a reply.
const (
	StatusJobs   Status = "jobs"   // Jobs is not empty
	StatusMore   Status = "more"   // many jobs were looked at that cannot run: call again at once
	StatusNext   Status = "next"   // nothing is due before Next
	StatusFrozen Status = "frozen" // the zone is frozen until Next
	StatusHalted Status = "halted" // an operator halted the zone
)

// Reply is the answer to a step.
type Reply struct {
	Status Status
	Now    Micros // Redis' time of the call
	Next   Micros // when to call again; 0: nothing is queued
	Jobs   []Grant
	Late   []ID              // jobs whose results did not count
	Specs  map[TaskID]Spec   // specs that the caller did not have
	Unread map[string]string `json:",omitempty"` // by task or job: why its spec or host is not read
	Why    string            `json:",omitempty"` // why no job starts, for people; empty: jobs start
	Epoch  string            `json:",omitempty"` // of the zone, as the caller knew it before
}

// MayHaveRun stands in Saved if an attempt may have started the present step of the job. Scripts
// look for it: a job that is cancelled then ends unknown. JSON escapes quotes, so no text has it.
const MayHaveRun = `"may_have_run":true`

// Further marks in Saved that the scripts look for when a job is cancelled. A job inside its
// on_fail may leave a host half restored. Its group is then frozen if a disruptive step had begun,
// or if the failed step may still act there.
const (
	Undoing    = `"failed":{`
	Disturbed  = `"disturbed":true`
	KeptBefore = `"keep":true`
)

// Saying returns the last message of a step that waits, or why a job did not begin, from the saved
// data of the job; mostly it is empty.
func Saying(saved string) string {
	var kept struct {
		Probe struct {
			Saying string `json:"saying"`
		} `json:"probe"`
		Why string `json:"why"`
	}
	if saved == "" || json.Unmarshal([]byte(saved), &kept) != nil {
		return ""
	}
	return cmp.Or(kept.Why, kept.Probe.Saying)
}

// Checkpoint is a worker's question before each further step of a runbook: may I continue?
type Checkpoint struct {
	Job   ID
	Token Token
	Step  int    // the next step
	Saved string // JSON that steps saved
}

// Verdict is the answer to a checkpoint.
type Verdict string

// The verdicts.
const (
	Go    Verdict = "go"    // the lock was renewed by the task's timeout
	Stop  Verdict = "stop"  // cancelled, halted or frozen: start no further step
	Stale Verdict = "stale" // the attempt is not the latest: report and do nothing more
)

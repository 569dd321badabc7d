package jobs

import (
	"cmp"
	"encoding/json"
	"time"

	"muster/fleet"
)

// Mode says why a job is handed out.
type Mode string

// The modes of a grant.
const (
	ModeFresh    Mode = "fresh"    // no attempt came before
	ModeContinue Mode = "continue" // go on at Step
	ModeLost     Mode = "lost"     // the attempt before vanished: find out what it did

	// Of a job that has ended unknown: nothing of it is to run, its host is asked how it ended.
	// Where another job has the host nothing may be written there, and it is only peeked at.
	ModeAsk  Mode = "ask"
	ModePeek Mode = "peek"
)

// Looks reports whether a job is handed out that has ended, to be asked about: it is no
// attempt, and no result is to be given of it.
func (m Mode) Looks() bool { return m == ModeAsk || m == ModePeek }

// Grant is one job handed to a worker.
type Grant struct {
	Job      ID            `json:"job"`
	Token    Token         `json:"token"`
	Mode     Mode          `json:"mode"`
	Attempt  int           `json:"attempt"`         // counts every take
	Tries    int           `json:"tries"`           // failures so far
	Probes   int           `json:"probes"`          // verify probes so far
	Crashes  int           `json:"crashes"`         // workers that died with it
	Step     int           `json:"step"`            // index of the step to go on with
	Saved    string        `json:"saved"`           // JSON of what steps kept; empty: nothing
	Spent    string        `json:"spent,omitempty"` // its time before this attempt: a Ledger
	Due      Micros        `json:"due"`             // since when it could have run
	LostNode string        `json:"lost_node,omitempty"`
	Timeout  time.Duration `json:"timeout"`        // the lock holds so long from the take
	Bound    time.Duration `json:"bound"`          // lost only: the old attempt may act on the host so long
	Host     *fleet.Host   `json:"host,omitempty"` // nil: not in the pinned inventory
}

// Kind is what a worker says about a job it had.
type Kind string

// The kinds of a result.
const (
	KindEnd    Kind = "end"    // Outcome, Class, ExitCode, Error
	KindRetry  Kind = "retry"  // a try failed; again after Delay
	KindWait   Kind = "wait"   // again after Delay, at Step; keeps the host unless Release
	KindVerify Kind = "verify" // a probe failed; again after Delay; keeps the host
	KindDefer  Kind = "defer"  // not now; again at Until; an attempt without a step is given back
	KindBack   Kind = "back"   // nothing was done; gives the attempt back
)

// Result is what a worker says about a job it had. It counts only if Token is
// the one of the job's latest attempt; else it is recorded as late.
type Result struct {
	Job      ID
	Token    Token
	Kind     Kind
	Outcome  Outcome
	Class    Class
	ExitCode *int
	Error    string        // one line for people, at most 300 bytes are kept
	Delay    time.Duration // retry, wait, verify, and defer where no time is known
	Until    Micros        // defer: when it may begin; 0: nobody knows, and it expires as before
	Step     int           // wait, verify, retry: where to go on
	Saved    string        // JSON of what steps kept
	Release  bool          // wait: gives the host back; defer: and its group, nothing was disturbed
	KeepLock bool          // end: something may still act on the host; it stays locked to its bound
	Note     string        // end: what is worth knowing beside the outcome, as "attached"; one line
	Said
}

// Said is what a host said, and what became of the time.
type Said struct {
	Spent  string // the job's time so far: a Ledger; empty: not known, as before
	Output []byte // head and tail, bounded
	Gap    Gap    // what is missing between them
	Runs   Runs   // as far as a later attempt, or who reads it, may need them
}

// Step is one call of a worker: what became of jobs it had, and how many new
// ones it wants. With Want 0 and no slot it is the sweep of a server.
type Step struct {
	Node    string // name of the node
	Slot    string // child slot on the node; one call at a time per slot
	Request string // id of this call; a repeated id gets the earlier answer
	Results []Result
	Want    int
	Known   []TaskID // tasks whose spec the caller has
}

// Status is the answer of a step beside the jobs.
type Status string

// The statuses of a reply.
const (
	StatusJobs   Status = "jobs"   // Jobs is not empty
	StatusMore   Status = "more"   // looked at many that could not run: call again at once
	StatusNext   Status = "next"   // nothing is due before Next
	StatusFrozen Status = "frozen" // the zone is frozen until Next
	StatusHalted Status = "halted" // an operator halted the zone
)

// Reply is the answer to a step.
type Reply struct {
	Status Status
	Now    Micros // Redis' time of the call
	Next   Micros // when to come again; 0: nothing is queued
	Jobs   []Grant
	Late   []ID            // results that did not count
	Specs  map[TaskID]Spec // of tasks the caller did not know
	Why    string          `json:",omitempty"` // nothing starts, for people; empty: there is no such reason
}

// MayHaveRun stands in Saved if an attempt may have started the step that the job is at,
// and it is not known. The scripts look for it: the end of a job that is cancelled then is
// not known either. No text in the JSON can hold it, because its quotes are not escaped.
const MayHaveRun = `"may_have_run":true`

// What else the scripts look for in Saved when a job is cancelled. Who is in the middle of
// its on_fail has a host that is half way back, and its group stays frozen: if a step that
// disturbs was begun, or if the step that failed may still act there.
const (
	Undoing    = `"failed":{`
	Disturbed  = `"disturbed":true`
	KeptBefore = `"keep":true`
)

// Saying is what a step that waits said last, or why a job did not begin, by what is kept of
// the job; mostly empty.
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

// Checkpoint is asked before every further step of a runbook.
type Checkpoint struct {
	Job   ID
	Token Token
	Step  int    // the step that is about to start
	Saved string // JSON of what steps kept
}

// Verdict is the answer to a checkpoint.
type Verdict string

// The verdicts.
const (
	Go    Verdict = "go"    // the lock was renewed by the task's timeout
	Stop  Verdict = "stop"  // cancelled, halted or frozen: start nothing more
	Stale Verdict = "stale" // the attempt is not the latest: say and do nothing more
)

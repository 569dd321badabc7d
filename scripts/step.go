package scripts

import "time"

// Step is one step of a runbook. Timeout, Repeatable and Disruptive are what the
// step says or else what the runbook says.
type Step struct {
	Name       string        `json:"name"`
	Kind       Kind          `json:"kind"`
	Run        string        `json:"run,omitempty"` // shell text with placeholders; of kinds run and check
	Upload     *UploadSpec   `json:"upload,omitempty"`
	Timeout    time.Duration `json:"timeout_ns"`
	Repeatable bool          `json:"repeatable,omitempty"`
	Disruptive bool          `json:"disruptive,omitempty"` // traffic may suffer
	Dry        Dry           `json:"dry,omitempty"`        // what it has to do with dry runs
	Specs
	Rules
}

// Specs are what a step does that gives its worker back. One is set at most.
type Specs struct {
	Wait   *WaitSpec   `json:"wait,omitempty"`
	Verify *VerifySpec `json:"verify,omitempty"`
	Reboot *RebootSpec `json:"reboot,omitempty"`

	Confirm *ConfirmSpec `json:"confirm,omitempty"`
	Gate    *GateSpec    `json:"gate,omitempty"`
}

// Rules say when a step runs, how it is judged, and what follows.
type Rules struct {
	When    []Condition `json:"when,omitempty"` // all must hold, or the step is skipped
	Expect  *Expect     `json:"expect,omitempty"`
	Classes []ClassRule `json:"classes,omitempty"` // the first that fits says whose business a failure is
	Retry   *Again      `json:"retry,omitempty"`
	Save    []Save      `json:"save,omitempty"`
	OnFail  *Block      `json:"on_fail,omitempty"` // run when this step failed
	Outcome string      `json:"outcome,omitempty"` // of the job, if this last step of on_fail succeeds
}

// Dry says what a step has to do with dry runs.
type Dry string

// What a step can have to do with dry runs.
const (
	DryToo  Dry = "preflight" // it is done in dry runs as well
	DryDiff Dry = "diff"      // it shows what would change, and is done in dry runs that ask for it
)

// Again says how often a step is tried whose failure is transient.
type Again struct {
	Tries int           `json:"tries"`
	Delay time.Duration `json:"delay_ns"` // between two of them
}

// Block is a run of steps among those of a runbook.
type Block struct {
	First int `json:"first"` // index
	Count int `json:"count"`
}

// Kind says what a step does.
type Kind string

// The kinds of step.
const (
	KindRun    Kind = "run"    // a shell text
	KindUpload Kind = "upload" // a file brought to the host
	KindCheck  Kind = "check"  // a shell text that changes nothing and must hold
	KindWait   Kind = "wait"   // gives the worker back for a time, or until something is so
	KindVerify Kind = "verify" // looks, again and again, whether the host is well
	KindReboot Kind = "reboot" // a new boot, and then as verify

	KindConfirm Kind = "confirm" // a change that the host takes back unless it is proven in time
	KindGate    Kind = "gate"    // goes on when a person says so
)

// RolledBack is the one outcome that a step of on_fail can give to its job.
const RolledBack = "rolled_back"

// UploadSpec is an upload as the runbook says it.
type UploadSpec struct {
	From    string `json:"from,omitempty"`    // an argument of type file; or:
	Blob    string `json:"blob,omitempty"`    // a stored content, by SHA-256 in hex; or:
	Content string `json:"content,omitempty"` // sent as it is
	To      string `json:"to"`                // absolute path with placeholders
	Mode    uint32 `json:"mode"`              // permission bits
}

package scripts

import "time"

// Step is one step of a runbook. Parse fills in Timeout, Repeatable and Disruptive from the
// runbook if the step does not set them.
type Step struct {
	Name       string        `json:"name"`
	Kind       Kind          `json:"kind"`
	Run        string        `json:"run,omitempty"` // shell text with placeholders; of kinds run and check
	Upload     *UploadSpec   `json:"upload,omitempty"`
	Timeout    time.Duration `json:"timeout_ns"`
	Repeatable bool          `json:"repeatable,omitempty"`
	Disruptive bool          `json:"disruptive,omitempty"` // traffic may suffer
	Dry        Dry           `json:"dry,omitempty"`        // its role in dry runs
	Spec       any           `json:"-"`                    // what only its kind has, such as *GateSpec
	Rules
}

// Rules say when a step runs, how it is judged, and what follows.
type Rules struct {
	When    []Condition `json:"when,omitempty"` // all must hold, or the step is skipped
	Expect  *Expect     `json:"expect,omitempty"`
	Classes []ClassRule `json:"classes,omitempty"` // the first match decides the class of a failure
	Retry   *Again      `json:"retry,omitempty"`
	Save    []Save      `json:"save,omitempty"`
	OnFail  *Block      `json:"on_fail,omitempty"` // runs if this step fails
	Outcome string      `json:"outcome,omitempty"` // of the job, if this last step of on_fail succeeds
}

// Dry is the role of a step in dry runs.
type Dry string

// The roles of a step in dry runs.
const (
	DryToo  Dry = "preflight" // it also runs in dry runs
	DryDiff Dry = "diff"      // it shows what would change, and runs only in dry runs that ask for it
)

// Again says how often a step is tried if its failure is transient.
type Again struct {
	Tries int           `json:"tries"`
	Delay time.Duration `json:"delay_ns"` // between two tries
}

// Block is a range of steps in a runbook.
type Block struct {
	First int `json:"first"` // index
	Count int `json:"count"`
}

// RolledBack is the only outcome that a step of on_fail can give to its job.
const RolledBack = "rolled_back"

// UploadSpec is an upload in a runbook.
type UploadSpec struct {
	From    string `json:"from,omitempty"`    // an argument of type file; or:
	Blob    string `json:"blob,omitempty"`    // a stored content, by SHA-256 in hex; or:
	Content string `json:"content,omitempty"` // sent unchanged
	To      string `json:"to"`                // absolute path with placeholders
	Mode    uint32 `json:"mode"`              // permission bits
}

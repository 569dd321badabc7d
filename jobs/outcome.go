package jobs

// Outcome says how a job ended. It is final, except Unknown, which may be settled later.
type Outcome string

// The outcomes (design §5).
const (
	Succeeded   Outcome = "succeeded"   // the check of the last step succeeded
	Failed      Outcome = "failed"      // the host refused; Class says who has to act
	Unreachable Outcome = "unreachable" // no step ever ran there
	Timeout     Outcome = "timeout"     // ran longer than its bound, and was stopped on the host
	RolledBack  Outcome = "rolled_back" // changed, not confirmed, restored by the host itself
	Unknown     Outcome = "unknown"     // not known what ran, or how the host is; no retry
	Cancelled   Outcome = "cancelled"   // an operator ended it: it never ran, or was stopped
	Expired     Outcome = "expired"     // did not start before its expiry
	Superseded  Outcome = "superseded"  // superseded by a newer task before it ran
	Skipped     Outcome = "skipped"     // a rule of its task kept it from running
)

// Outcomes lists all outcomes in the order in which people read them.
func Outcomes() []Outcome {
	return []Outcome{Succeeded, Failed, Unreachable, Timeout, RolledBack, Unknown,
		Cancelled, Expired, Superseded, Skipped}
}

// Valid reports whether o is one of Outcomes.
func (o Outcome) Valid() bool {
	for _, x := range Outcomes() {
		if o == x {
			return true
		}
	}
	return false
}

// Class says who has to act on a failure.
type Class string

// The classes of a failure.
const (
	ClassNone      Class = ""
	ClassUser      Class = "user"      // the author: check the artifact, ruleset or command
	ClassOperator  Class = "operator"  // the operator: host key, sudo, disk
	ClassTransient Class = "transient" // nobody: it may work the next time
)

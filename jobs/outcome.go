package jobs

// Outcome is how a job ended. Outcomes are final, but for Unknown: the record of the host may
// tell later how it ended.
type Outcome string

// The outcomes (design §5).
const (
	Succeeded   Outcome = "succeeded"   // the last step's own check said so
	Failed      Outcome = "failed"      // the host said no; Class says whose business it is
	Unreachable Outcome = "unreachable" // never got to run anything there
	Timeout     Outcome = "timeout"     // ran over its bound and was stopped on the host
	RolledBack  Outcome = "rolled_back" // changed, not confirmed, restored itself
	Unknown     Outcome = "unknown"     // not known what ran, or how the host is; no silent retry
	Cancelled   Outcome = "cancelled"   // an operator ended it: it never ran, or was stopped
	Expired     Outcome = "expired"     // did not start before its expiry
	Superseded  Outcome = "superseded"  // a newer task took its place before it ran
	Skipped     Outcome = "skipped"     // a rule of its task kept it from running
)

// Outcomes lists all outcomes in the order in which people read them.
func Outcomes() []Outcome {
	return []Outcome{Succeeded, Failed, Unreachable, Timeout, RolledBack, Unknown,
		Cancelled, Expired, Superseded, Skipped}
}

// Valid tells whether o is one of Outcomes.
func (o Outcome) Valid() bool {
	for _, x := range Outcomes() {
		if o == x {
			return true
		}
	}
	return false
}

// Class says whose business a failure is.
type Class string

// The classes of a failure.
const (
	ClassNone      Class = ""
	ClassUser      Class = "user"      // check the artifact, ruleset or command
	ClassOperator  Class = "operator"  // host key, sudo, disk: somebody has to look
	ClassTransient Class = "transient" // may be gone the next time
)

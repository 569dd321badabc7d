package trust

import (
	"time"

	"muster/internal/serverkey"
)

// A Judge checks what nodes say of jobs.
type Judge struct {
	stamps   serverkey.Stamps
	requires bool
}

// Judge returns what checks the testimonies of nodes; nil if the rules ask nothing of jobs.
func (r *Rules) Judge() *Judge {
	mode := r.Policy.strictest()
	if r.Keys.None() || mode == Off {
		return nil
	}
	return &Judge{r.Keys.Stamps(serverkey.Results), mode == Require}
}

// Requires reports whether a rule requires that orders hold.
func (j *Judge) Requires() bool { return j.requires }

// Check returns an error unless a node proved a testimony, about the time at which Redis got it.
func (j *Judge) Check(t Testimony, proof string, got time.Time) error {
	return t.Check(j.stamps, proof, got)
}

package trust

import (
	"time"

	"muster/internal/serverkey"
	"muster/internal/sshsig"
)

// Unread begins the words of a node that cannot read its rules: it begins no jobs.
const Unread = "this node cannot read whom it trusts"

// Rules say whom a node or a server trusts. They do not change: after a change of their files there
// are others.
type Rules struct {
	Policy  *Policy
	Signers sshsig.Allowed
	Keys    serverkey.Keys // of the nodes, for the state of jobs
}

// At returns those whose signatures count at a time.
func (r *Rules) At(now time.Time) Signers { return Signers{Allowed: r.Signers, Now: now} }

package api

// UserHeader names an operator, as the `as` of a body does. Both count only in the demo: a token
// or the kernel says who calls.
const UserHeader = "X-Muster-User"

// The headers of an answer to GET /v1/jobs/{job}/output.
const (
	HeaderNext  = "Muster-Next"  // the position to continue from, in bytes
	HeaderEnded = "Muster-Ended" // "false" while more output may follow
)

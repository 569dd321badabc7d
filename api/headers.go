package api

// UserHeader names an operator, like the field `as` of a body. Both count only in the demo:
// otherwise a token or the kernel identifies the caller.
const UserHeader = "X-Muster-User"

// The headers of an answer to GET /v1/jobs/{job}/output.
const (
	HeaderNext  = "Muster-Next"  // the position to continue from, in bytes
	HeaderEnded = "Muster-Ended" // "false" while more output may follow
)

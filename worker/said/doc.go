// Package said keeps what a host says in one attempt at a job, on two ways: a [Transcript] for the
// result, with the head and the tail of it, and a [Voice] for the people who listen meanwhile.
//
// Both hear the same bytes and bound what they keep. A line of a host never looks like one of the
// lines that muster puts between two steps.
//
// Floor 2: may import jobs, fleet/remote.
package said

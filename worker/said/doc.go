// Package said keeps the output of a host in one attempt at a job, in two forms: a [Transcript] for
// the result, with the head and the tail of the output, and a [Voice] for people who listen
// meanwhile.
//
// Both get the same bytes and bound the part that they keep. A line of a host never looks like one
// of the lines that muster puts between two steps.
//
// Floor 2: may import jobs, fleet/remote.
package said

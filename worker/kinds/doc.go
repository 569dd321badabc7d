// Package kinds does the steps of a job, each kind of step in a file of its own.
//
// A [Kind] is one step of one attempt. The attempt lends it a [Hand]: what it knows of the job, the
// connection to the host, the go of the queue, the windows. A kind keeps its own state in its own
// struct, and for the next attempt in [verdict.Memory]. worker/verdict decides how the job ends.
//
// A new kind of step is a new file here and a row in the table of kinds.go.
//
// Floor 3: may import fleet/remote, internal/seal, internal/trial,
// jobs, scripts, worker/playbook, worker/said, worker/veil,
// worker/verdict.
package kinds

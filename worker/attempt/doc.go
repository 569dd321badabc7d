// Package attempt makes one try at a job: it walks through the steps of its runbook, from the take
// of the job to a result.
//
// An [Env] holds what all attempts of a worker share. [Env.New] makes an attempt, [Attempt.Begin]
// gives it its time, and [Attempt.Run] works on the job.
//
// First an attempt finds out whether it can do anything at all (entry). Before each step it asks
// the windows (admission), the group of the host (groupMarks) and the queue (clearance) whether the
// step may start. worker/kinds does the step, and worker/verdict decides about its end. The other
// files hold what both need: the lease, the connection, the secrets, the records of the host. A
// looker only reads the record of a job that has ended.
//
// Floor 4: may import fleet, fleet/remote, internal/seal, jobs, scripts, windows, worker/agreed,
// worker/kinds, worker/said, worker/verdict.
package attempt

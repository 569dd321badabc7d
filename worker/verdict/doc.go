// Package verdict decides how an attempt at a job ends. It is pure: [Evidence] goes in, one result
// for the queue comes out, and nothing here connects, waits, or reads a clock.
//
// Promises:
//   - A result is true or it is "unknown": a reader may rely on "failed" and on "unreachable".
//   - A step that may have run runs again only if it is repeatable, or if its host says that it
//     never began.
//   - A job that was cancelled is never tried again. A step that ended by itself before it could
//     be stopped keeps its own end.
//   - There is one way to say that a step was not started, whatever the reason:
//     [Evidence.NotStarted].
//
// The evidence carries a copy of the [Memory] that the attempt keeps for the next one. Code that
// changes the memory of the attempt takes new evidence before the next decision.
//
// Floor 2: may import jobs, fleet, fleet/remote, internal/trial, scripts.
package verdict

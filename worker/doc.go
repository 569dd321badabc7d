// Package worker is the child process of a master: it takes jobs of one zone, starts an attempt at
// each (see worker/attempt), and reports the results.
//
// A [Worker] has one clerk, which makes all calls to the queue, and up to Config.Slots attempts,
// each in a goroutine of its own. Results that come while a call is under way go with the next
// call, which also asks for a new job for each free slot: one round trip reports and takes.
//
// The worker keeps these rules:
//   - The clerk repeats a call without an answer unchanged, under the same request id, as long as
//     the call holds results. So no result gets lost because Redis was away.
//   - An attempt is over by its deadline on the boot clock, which counts from before the first
//     sending of its take. No step starts without enough time for it, and no further step starts
//     without a go from the queue.
//   - The clerk asks once a second which jobs in hand are cancelled, and their attempts stop them
//     on their hosts; see stops.go.
//   - A result is true, or it is "unknown". Pure functions in worker/verdict decide.
//   - A result that cannot be reported keeps the process alive: with a master as long as the master
//     wants, without one until an hour after the locks of its jobs have ended. Until then the
//     result may still count, because nobody can take a job from a queue that does not answer.
//     After that the process logs its results and ends with an error, because its slot is needed.
//     The queue finds the jobs lost; they end unknown, or run again if they may.
//   - When the master says drain, or is gone, the worker brings the jobs in hand to their end,
//     reports them to the queue and returns.
//
// Package worker starts no processes, and reaches Redis and hosts through interfaces that it
// declares. It never reads the wall clock.
//
// Floor 5: may import fleet/remote, jobs, worker/agreed, worker/attempt, worker/said,
// worker/verdict.
package worker

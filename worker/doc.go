// Package worker is the child process of a master: it takes jobs of one zone,
// runs their steps on their hosts and says what became of them.
//
// A [Worker] has one clerk, which makes all calls to the queue, and up to
// Config.Slots attempts, each in a goroutine of its own. What ended while a call
// was under way goes with the next one, and the same call asks for as many new
// jobs as slots are free: finish and take next are one round trip.
//
// What holds:
//   - A call without an answer is repeated as it is, under the same request id,
//     for as long as results are in it. Nothing that ran is forgotten because
//     Redis was away.
//   - A job is over by its deadline on the boot clock, which counts from before
//     its take was first sent. No step starts without the time for it, and no
//     further step without a go from the queue.
//   - It asks once a second which of its jobs an operator cancelled, and stops
//     those on their hosts; see stops.go and cancel.go.
//   - What is said about a job is true or it is "unknown". The decisions are pure
//     functions in worker/kinds, worker/verdict.
//   - A result that cannot be reported keeps the process alive: with a master for
//     as long as that wants, without one until the locks of its jobs have ended and
//     an hour more. Up to then its result may still count, because nobody else can
//     take a job from a queue that does not answer. After it the process ends with
//     an error: its slot is needed, and the one thing that it knows is in its log.
//     The queue finds the jobs lost, and they end unknown, or run again if they may.
//   - When its master says drain, or is gone, it ends what it has in hand,
//     reports that to the queue and returns.
//
// It starts no processes and knows neither Redis nor SSH: both are interfaces
// that it declares. It never reads the wall clock.
//
// Floor 5: may import fleet/remote, jobs, worker/agreed, worker/attempt, worker/said,
// worker/verdict.
package worker

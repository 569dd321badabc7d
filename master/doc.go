// Package master keeps a node's children alive: it looks for due jobs, starts a
// child process for the first of them, more while more is due, and reaps, kills
// and reports them.
//
// A [Master] does no job itself: it has no SSH and no SQL. A child gets its first
// jobs from the master and takes all others itself; so an idle node has no
// children, and a busy one no bottleneck.
//
// The master guarantees:
//   - A node never runs more children than Config.Children. Each child holds the
//     lock of its slot, a file in Config.Dir, until it ends. So the children of an
//     earlier master count too; they are called orphans.
//   - Each job of a take is in the hands of a child, or is returned, or is reported
//     as lost. The master repeats a call to the queue under the same request id
//     until the queue answers; after an upgrade the new binary does.
//   - A child that dies before its first report has started nothing, so its jobs
//     are returned and no try is counted. Any other death is reported as a loss,
//     with its reason.
//
// All state belongs to the goroutine of [Master.Run]; it is the type node. Each wait
// for a call or a child has a goroutine of its own, which then sends node a function
// to run. There is one select.
//
// The package reads no configuration, listens to no signals and never ends the
// process: cmd does that.
//
// Floor 3: may import fleet, jobs, internal/proc and hclog.
package master

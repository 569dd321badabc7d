// Package master keeps a node's children alive: it looks for due jobs, starts a
// child process for the first of them, more while more is due, and reaps, kills
// and reports them.
//
// A [Master] does no job itself: it has no SSH and no SQL. A child gets its first
// jobs from the master and takes all others itself; so an idle node has no
// children, and a busy one no bottleneck.
//
// What holds:
//   - A node never runs more children than Config.Children. Each holds the lock
//     of its slot, a file in Config.Dir, until it ends, so those of an earlier
//     master count too; they are called orphans.
//   - What was taken is in the hands of a child, or given back, or told to be
//     lost. A call to the queue is repeated under the same request id until it is
//     answered, also by the binary that comes after an upgrade.
//   - A child that dies before its first report has started nothing, so its jobs
//     are given back and no try is counted. Any other death is told as a loss,
//     with its reason.
//
// All state belongs to one goroutine, that of [Master.Run]; it is the type node.
// Whoever waits for something, a call or a child, does so in a goroutine of its
// own and sends node a function to run. There is one select.
//
// The package reads no configuration, listens to no signals and never ends the
// process: that is for cmd.
//
// Floor 3: may import fleet, jobs, internal/proc and hclog.
package master

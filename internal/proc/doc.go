// Package proc starts a child process with inherited files, talks with it, and
// notices its death. It is the only access to processes and raw system calls.
//
// A [Parent] starts a [Child] by running a binary with one end of a socketpair as
// file descriptor 3 and further files from 4 on. Both ends speak JSON, one message
// a line, through a [Conn]; the child finds its end with [Inherited]. A child is
// never tied to the life of its parent: it learns of the parent's end by EOF.
//
// A [LockFile] is a lock that lives as long as any process has the file open, so a
// child that inherits it holds it until it ends, even if the parent ends first.
//
// [Exec] puts another binary in the place of this one: same pid, same children.
// [Child.Detach] before and [Parent.Adopt] after carry a child over.
//
// The package guarantees:
//   - No signal goes to a pid that may belong to another process by now: a child is
//     reaped and signalled under one lock, and never signalled after.
//   - [Child.Wait] learns of a death without reaping it. A death at the
//     moment of an exec is seen by the next binary.
//
// The package decides nothing: the master decides when to start, to kill or to give up.
//
// Floor 0: may import the standard library and golang.org/x/sys/unix.
package proc

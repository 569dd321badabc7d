// Package work has the calls of a child with jobs in hand, and those that its master makes for it:
// deliver results, take jobs, ask before each step, pass on the output of hosts.
//
// Floor 4: may import the connection and all below it.
package work

// Package programs runs the programs that print events: each line of their standard output is one,
// and is stored before the next one is read. One server runs them, each in a process group of its
// own, which ends with the server. Their output is hostile.
//
// Floor 5: may import ingress, internal/proc, jobs/queue/inbox and what is below.
package programs

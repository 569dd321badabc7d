// Package steward tells a master how much work it may take: by what its machine can bear, by the
// orders of operators about the node, and by the zones whose own nodes are away.
//
// An order about the node is kept in the folder of the node, so that it holds also when the master
// starts anew, and when Redis has lost it.
//
// Floor 5: may import master, trust, jobs/staff and what is below.
package steward

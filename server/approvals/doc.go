// Package approvals has the resource approvals: tasks that wait until people have signed their
// orders. It takes signatures, and commits a task once the policy of this server is content. Nodes
// check the signatures by themselves, so a server that commits too early gains nothing.
//
// Floor 6: may import what is below.
package approvals

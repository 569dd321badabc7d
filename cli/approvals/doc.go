// Package approvals has the command approvals: it shows tasks that wait for signatures, and signs
// or refuses them. It believes no server about what it signs: the plan that it shows is read from
// the bytes of the order.
//
// Floor 4: may import cli, trust and what is below.
package approvals

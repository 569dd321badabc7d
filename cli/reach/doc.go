// Package reach is how commands reach hosts from the machine of an operator: with which key, how
// many at a time, and the inventory of files that the server does not have in force.
//
// Floor 11: may import internal/settings and what is below.
package reach

// Package hosts has the commands about hosts and their facts, groups, limits and SSH.
//
// Floor 13: may import cli/enroll, cli/reach and what is below.
package hosts

// Package hosts has the commands about hosts and their facts, groups, limits and SSH.
//
// Floor 10: may import cli/submit, internal/settings and below.
package hosts

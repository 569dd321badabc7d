// Package hosts has the commands about hosts and what belongs to them: hosts, facts, group,
// limits, ssh.
//
// Floor 10: may import cli/submit, internal/settings and below.
package hosts

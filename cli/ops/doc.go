// Package ops has the commands for people who operate muster itself: queue, nodes, fsck, thaw,
// tokens, health, history, reports, plans.
//
// Floor 6: may import cli/submit and below.
package ops

// Package times has the commands about windows, freezes, approvals and schedules.
//
// Floor 6: may import cli/submit and below.
package times

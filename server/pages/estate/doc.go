// Package estate has the pages of all that work needs: hosts, the queue, schedules, nodes,
// and of what is kept: history, approvals, the audit log.
//
// Floor 6: may import server/pages/frame and what is below it.
package estate

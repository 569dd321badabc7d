// Package election gives each duty to one server at a time: servers ask Redis for the lease of a
// duty, renew it, and stand down before it may have ended.
//
// Floor 5: may import jobs/queue/hub and what is below.
package election

// Package draft makes the draft of a task from a request: its hosts, its frozen runbook, its
// rollout and its chain, or the list of all mistakes in the request. It changes nothing and asks
// nobody; a Setting holds all that it may know.
//
// Floor 6: may import server/stock, server/fault, scripts, jobs, windows and what is below.
package draft

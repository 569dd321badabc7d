// Package orders carries out the orders of operators about work that is in the queue: pauses and
// the halt, cancels, rollouts, gates, redundancy groups, hosts, the repair of a zone.
//
// Floor 6: may import server/stock, server/web, jobs/queue for its errors, and what is below.
package orders

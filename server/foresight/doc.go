// Package foresight says when a draft would be done: it puts together the queue, the windows, the
// nodes and the estimates as they are now, and lets jobs/plan run them in pretended time.
//
// Floor 7: may import server/draft, server/stock, jobs/plan and what is below.
package foresight

// Package tasks answers questions about tasks and jobs over HTTP: what Redis knows or, where that
// has forgotten, what history knows; at once, as a stream of events, or as a summary.
//
// Floor 7: may import server/waits, server/fold, server/stock, server/web, history, and what is
// below.
package tasks

// Package waits says why jobs do not run: Lacks gathers reasons such as a pause or a locked host,
// Awaits the windows and freezes, each with the jobs that wait for the same.
//
// Floor 6: may import server/stock, jobs/queue/read, windows and what is below.
package waits

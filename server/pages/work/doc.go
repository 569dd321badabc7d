// Package work has the pages of work: what needs a person now, tasks, jobs, runs and runbooks.
//
// Floor 6: may import server/pages/frame and what is below it.
package work

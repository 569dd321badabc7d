// Package lanes lets tasks of a lane begin in their order, shows lanes, and takes the order to
// continue behind a task that failed.
//
// Floor 7: may import server/reach, server/web, jobs/queue, jobs/lane and what is below.
package lanes

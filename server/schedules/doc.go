// Package schedules answers questions and orders about schedules over HTTP: it applies files of
// them, pauses, resumes and removes them. Package server/duties fires them.
//
// Floor 6: may import server/duties, server/fault, server/web, jobs/queue and its hub, and what is
// below.
package schedules

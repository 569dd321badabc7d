// Package apply puts files with entries of all kinds in force, all of them or none, and shows what
// applies did. Each kind has a file with its Kind.
//
// Floor 7: may import server/calendar, server/entries, server/schedules, jobs/queue/applies, and
// what is below.
package apply

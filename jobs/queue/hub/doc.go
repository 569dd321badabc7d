// Package hub stores the data that belongs to no zone: duties, the inventory, drained hosts,
// facts, the timetable, schedules, chains and tokens. Each of them has a small handle.
//
// Floor 4: may import the connection and all below it.
package hub

// Package hub keeps what belongs to no zone: nodes, duties, the inventory, drained hosts,
// facts, the timetable, schedules, chains and tokens. Each of them is a small handle.
//
// Floor 4: may import the connection and all below it.
package hub

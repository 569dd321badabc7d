// Package plan foretells when tasks will be done: it lets the jobs that wait, and those
// of a new task, run in pretended time, with the windows as they are agreed, the fair
// order of an overloaded queue, the groups and limits, and as many slots as there are.
//
// It is right if nothing else happens: no task comes, no host fails, and jobs take as
// long as such jobs took. Hosts that do not fit into any window, and slots that would
// be needed, are told from the same run.
//
// Floor 2: may import jobs, windows and below.
package plan

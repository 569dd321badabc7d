// Package plan predicts when tasks will be done. It simulates the waiting jobs and the jobs of a
// new task, with the windows in force, the fair order of an overloaded queue, the groups and
// limits, and the present number of slots.
//
// The prediction holds if nothing else happens: no further task is submitted, no host fails, and
// each job takes as long as such jobs took before. The same simulation finds hosts that do not fit
// into any window, and the number of slots that would be needed.
//
// Floor 2: may import jobs, windows and below.
package plan

// Package governor decides how much work a node may take, from what was measured on its machine:
// load, memory, disk, processes, open files, pressure, and the limits of its control group.
//
// A machine that lacks something is starved: its node takes nothing until there is enough again,
// and running jobs continue. A machine that has little left may have fewer children than its
// configuration says. The more children run, the fewer begin at once, and the later: so nodes with
// less work take more of it.
//
// The package is pure: it knows neither files nor the time.
//
// Floor 0: may import internal/wording.
package governor

package watch

import (
	"strconv"

	"muster/cli"
	"muster/jobs"
)

// TaskGrid shows tasks as a table.
func TaskGrid(list []jobs.TaskInfo, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("TASK", "RUNBOOK", "OPERATOR", "STATE", ">DONE", ">TOTAL", ">SUCCEEDED", ">OTHER",
		"SUBMITTED", ">TOOK", "ON", "ARGUMENTS")
	for _, t := range list {
		done, good := t.Outcomes.Sum(), t.Outcomes[jobs.Succeeded]
		other := strconv.Itoa(done - good)
		if done > good {
			other = colours.Paint(cli.Red, other)
		}
		g.Add(cli.Cell(string(t.Task)), cli.Cell(t.Runbook), cli.Cell(t.Operator), stateWords(t),
			strconv.Itoa(done), strconv.Itoa(t.Total), strconv.Itoa(good), other, cli.Moment(t.Submitted),
			cli.Span(cli.Seconds(t.Seconds)), cli.Fit(cli.Cell(t.On), 60), ranWords(t.Ran))
	}
	return g
}

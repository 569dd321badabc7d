package watch

import (
	"strconv"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// ranColumns bounds the arguments in a row of a table; a task and a job show all of them.
const ranColumns = 60

// ranWords returns the arguments for a row of a table.
func ranWords(r *jobs.Ran) string { return cli.OrDash(cli.Fit(cli.Cell(r.Text()), ranColumns)) }

// PastRan returns the arguments of a job in history.
func PastRan(j api.PastJob) string {
	if j.Asked == nil {
		return ranWords(nil)
	}
	return ranWords(j.Asked.Ran)
}

// RanPairs describe what a task runs, one line for the runbook and one for each argument.
func RanPairs(runbook string, r *jobs.Ran) [][2]string {
	if r == nil {
		return [][2]string{{"runbook", cli.Cell(runbook) + " (its arguments are not kept)"}}
	}
	words := cli.Cell(runbook)
	if r.Version != "" {
		words += ", version " + cli.Cell(r.Version)
	}
	pairs := [][2]string{{"runbook", words + ", sha256 " + cli.Cell(r.SHA256)}}
	for _, a := range r.Arguments {
		pairs = append(pairs, [2]string{"argument", cli.Cell(a.Text())})
	}
	return pairs
}

// WhoWords names the person who ordered a task, as far as that was stored.
func WhoWords(operator string, proven bool, r *jobs.Ran) string {
	if proven || r == nil || operator == "" {
		return cli.Cell(operator)
	}
	return cli.Cell(operator) + " (unproven)"
}

// AskedHead lists the columns of a report as CSV that describe the request.
var AskedHead = strings.Fields("runbook sha256 arguments on operator reason")

// askedMax bounds the arguments in a row of a report, in bytes: each row has them.
const askedMax = 1000

// AskedCells shows the request of a task in the columns of AskedHead.
func AskedCells(t jobs.TaskInfo) []string {
	hash := ""
	if t.Ran != nil {
		hash = t.Ran.SHA256
	}
	return []string{t.Runbook, hash, jobs.Brief(t.Ran.Text(), askedMax), t.On,
		WhoWords(t.Operator, t.Proven, t.Ran), t.Reason}
}

// OfPairs names the task of a job, and its request.
func OfPairs(t *api.OfTask) [][2]string {
	if t == nil {
		return nil
	}
	pairs := append([][2]string{{"operator", WhoWords(t.Operator, t.Proven, t.Ran)},
		{"on", cli.Cell(t.On)}, {"reason", cli.Cell(t.Reason)}}, RanPairs(t.Runbook, t.Ran)...)
	if t.Traces != nil {
		pairs = append(pairs, [2]string{"trace", traceWords(*t.Traces)},
			[2]string{"trace of task", cli.Cell(t.Traces.Task)})
	}
	return pairs
}

// traceWords names the trace of a job, and says whether a collector has ever had it.
func traceWords(t api.Traces) string {
	words := cli.Cell(t.Job)
	switch {
	case t.Sent == nil:
		words += " (sent after its end, if it ends badly)"
	case !*t.Sent:
		words += " (not sent: it did not end badly, and its task is not in the sample)"
	}
	return words
}

// CourseText shows attempts and steps; empty if none are stored.
func CourseText(c api.Course, width int) string {
	text := ""
	if len(c.Attempts) > 0 {
		g := cli.NewGrid(">ATTEMPT", "NODE", "STARTED", "ENDED", "HOW")
		for _, a := range c.Attempts {
			g.Add(strconv.Itoa(a.Attempt), cli.OrDash(cli.Cell(a.Node)), cli.Moment(a.Started),
				cli.Moment(a.Ended),
				cli.OrDash(cli.Cell(a.How)))
		}
		text += "\n" + g.Render(width, true)
	}
	if len(c.Steps) > 0 {
		g := cli.NewGrid(">STEP", "BEGUN")
		for _, b := range c.Steps {
			g.Add(strconv.Itoa(b.Step), cli.Moment(b.At))
		}
		text += "\n" + g.Render(width, true)
	}
	return text
}

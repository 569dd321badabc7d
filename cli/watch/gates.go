package watch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/fleet/remote"
	"muster/jobs"
)

// GatesOf returns the jobs at gates of a task, or on the hosts of a selector. A host may be named
// like a task; a text that cannot be the id of a task is a selector.
func GatesOf(ctx context.Context, c *cli.Client, of string) (api.GateList, error) {
	if _, err := jobs.ParseTaskID(of); err == nil {
		l, err := Gates(ctx, c, url.Values{"task": {of}})
		var no *cli.Refusal
		if !errors.As(err, &no) || no.Status != http.StatusNotFound {
			return l, err
		}
		if l, other := Gates(ctx, c, url.Values{"on": {of}}); other == nil {
			return l, nil
		}
		return l, err
	}
	q := url.Values{}
	if of != "" {
		q.Set("on", of)
	}
	return Gates(ctx, c, q)
}

// Gates returns the jobs that wait at a gate.
func Gates(ctx context.Context, c *cli.Client, q url.Values) (l api.GateList, err error) {
	err = c.Do(ctx, cli.Call{Method: http.MethodGet, Path: "/v1/gates", Query: q,
		Bound: cli.SubmitTimeout}, &l)
	return l, err
}

// unanswered counts the jobs of a list that wait for a person.
func unanswered(l api.GateList) (n int) {
	for _, one := range l.Gates {
		if one.Answer == "" {
			n++
		}
	}
	return n
}

// GateWords describes the effect of an answer on a gate.
func GateWords(a jobs.Answered) string {
	gate := "the gate " + cli.Cell(a.Name)
	if a.Name == "" {
		gate = fmt.Sprintf("the gate at step %d, which is passed,", a.Step+1)
	}
	is := "is refused"
	switch a.Word {
	case jobs.GateOpen:
		is = "is open"
	case jobs.GateLate:
		is = "was not opened in time"
	}
	if a.Already {
		return gate + " " + is + " already, " + cli.Cell(a.Note)
	}
	return gate + " " + is
}

// WhereWords says where a job is that waits at no gate.
func WhereWords(e jobs.Elsewhere) string {
	if e.State == jobs.Ended {
		return "it has ended, " + cli.Cell(string(e.Outcome))
	}
	return fmt.Sprintf("it is %s, at step %d", cli.Cell(string(e.State)), e.Step+1)
}

// GateText shows the gate of a job. The question may contain output of a host, and stands behind a
// bar.
func GateText(j jobs.JobInfo) string {
	g := j.Gate
	if g == nil {
		return ""
	}
	text := fmt.Sprintf("\nIt waits at the gate %s for a person, since %s and until %s:\n",
		cli.Cell(g.Name), cli.Moment(g.Since), cli.Moment(g.Until))
	for line := range strings.Lines(remote.Harmless(g.Question)) {
		text += "  | " + strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ") + "\n"
	}
	id := cli.Cell(string(j.ID))
	if g.Answer != "" {
		return text + "The gate was " + cli.Cell(g.Answer) + ". The job continues as soon as it may.\n"
	}
	return text + fmt.Sprintf("muster gate open %[1]s --reason '…'\n"+
		"muster gate refuse %[1]s --reason '…'\n", id)
}

// atGates counts the jobs of a task that wait for a person.
func atGates(n int, task jobs.TaskID) string {
	wait := "wait"
	if n == 1 {
		wait = "waits"
	}
	return fmt.Sprintf("%s %s at a gate for a person: muster gate ls %s", cli.Count(n, "job"), wait,
		cli.Cell(string(task)))
}

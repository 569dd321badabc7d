package watch

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// awaitLines lists the windows that jobs wait for, two lines each.
func awaitLines(list []jobs.Appointment, width int) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteString(cli.Fit(fmt.Sprintf("%d waiting: %s", a.Count, cmp.Or(cli.Cell(a.Hosts),
			"other hosts")),
			narrow(width, HostColumns)) + "\n  " + cli.Fit(awaitedWords(a), LineColumns) + "\n")
	}
	return b.String()
}

// AwaitWords names the window that a job waits for, and how many jobs of its task wait too.
func AwaitWords(a *jobs.Appointment) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s; %s of its task %s for it", awaitedWords(*a), cli.Count(a.Count, "job"),
		verb(a.Count, "waits", "wait"))
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// awaitedWords describes what jobs wait for.
func awaitedWords(a jobs.Appointment) string {
	switch {
	case a.Why != "":
		return fmt.Sprintf("%s; looked at next at %s", cli.Cell(a.Why), cli.Moment(a.Due))
	case a.Due.After(a.Opens.Add(time.Second)): // its turn comes after the opening
		return fmt.Sprintf("%s: due at %s, open from %s to %s", windowNames(a.Windows), cli.Moment(a.Due),
			cli.Moment(a.Opens), cli.Moment(a.Ends))
	}
	return fmt.Sprintf("%s: opens at %s, ends at %s", windowNames(a.Windows), cli.Moment(a.Opens),
		cli.Moment(a.Ends))
}

func windowNames(list []jobs.WindowName) string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = fmt.Sprintf("%s (%s)", cli.Cell(w.Name), cli.Cell(w.For))
	}
	return verb(len(list), "window ", "windows ") + strings.Join(names, ", ")
}

// DeferredWords counts the jobs of a zone that wait for a time of their own; empty: there are none.
func DeferredWords(d jobs.Deferrals) string {
	if d.Count == 0 {
		return ""
	}
	more := ""
	if d.More {
		more = " at least"
	}
	return fmt.Sprintf("%s deferred%s, the first one due %s", cli.Count(d.Count, "job"), more,
		cli.Moment(d.Next))
}

// DeferredText shows, in a table, what deferred jobs of a zone wait for.
func DeferredText(z api.Zone, width int, headless bool) string {
	words := DeferredWords(z.Deferred)
	if words == "" {
		return ""
	}
	text := "\n" + cli.Cell(z.Zone) + ": " + words + "\n"
	if len(z.Deferred.Appointments) == 0 {
		return text
	}
	g := cli.NewGrid("TASK", "OPERATOR", ">JOBS", "DUE", "OPENS", "ENDS", "WAIT FOR")
	for _, a := range z.Deferred.Appointments {
		what := cli.Cell(a.Why)
		if what == "" {
			what = windowNames(a.Windows)
		}
		g.Add(cli.OrDash(cli.Cell(string(a.Task))), cli.OrDash(cli.Cell(a.Operator)),
			strconv.Itoa(a.Count),
			cli.Moment(a.Due), cli.Moment(a.Opens), cli.Moment(a.Ends), what)
	}
	return text + g.Render(width, !headless)
}

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
)

// awaitLines say for which windows jobs wait, two lines each.
func awaitLines(list []jobs.Appointment, width int) string {
	var b strings.Builder
	for _, a := range list {
		b.WriteString(fit(fmt.Sprintf("%d waiting: %s", a.Count, cmp.Or(cell(a.Hosts), "other hosts")),
			narrow(width, hostColumns)) + "\n  " + fit(awaitedWords(a), lineColumns) + "\n")
	}
	return b.String()
}

// awaitWords say for which window a job waits, and how many of its task do.
func awaitWords(a *jobs.Appointment) string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf("%s; %s of its task %s for it", awaitedWords(*a), count(a.Count, "job"),
		verb(a.Count, "waits", "wait"))
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// awaitedWords say what jobs wait for.
func awaitedWords(a jobs.Appointment) string {
	switch {
	case a.Why != "":
		return fmt.Sprintf("%s; looked at next at %s", cell(a.Why), moment(a.Due))
	case a.Due.After(a.Opens.Add(time.Second)): // behind it is its turn
		return fmt.Sprintf("%s: due at %s, open from %s to %s", windowNames(a.Windows), moment(a.Due),
			moment(a.Opens), moment(a.Ends))
	}
	return fmt.Sprintf("%s: opens at %s, ends at %s", windowNames(a.Windows), moment(a.Opens),
		moment(a.Ends))
}

func windowNames(list []jobs.WindowName) string {
	names := make([]string, len(list))
	for i, w := range list {
		names[i] = fmt.Sprintf("%s (%s)", cell(w.Name), cell(w.For))
	}
	return verb(len(list), "window ", "windows ") + strings.Join(names, ", ")
}

// deferredWords tell of the jobs of a zone that wait for a time of their own; empty: there are
// none.
func deferredWords(d jobs.Deferrals) string {
	if d.Count == 0 {
		return ""
	}
	more := ""
	if d.More {
		more = " at least"
	}
	return fmt.Sprintf("%s deferred%s, the first one due %s", count(d.Count, "job"), more,
		moment(d.Next))
}

// deferredText is a table of what deferred jobs of a zone wait for.
func deferredText(z api.Zone, width int, headless bool) string {
	words := deferredWords(z.Deferred)
	if words == "" {
		return ""
	}
	text := "\n" + cell(z.Zone) + ": " + words + "\n"
	if len(z.Deferred.Appointments) == 0 {
		return text
	}
	g := newGrid("TASK", "OPERATOR", ">JOBS", "DUE", "OPENS", "ENDS", "WAIT FOR")
	for _, a := range z.Deferred.Appointments {
		what := cell(a.Why)
		if what == "" {
			what = windowNames(a.Windows)
		}
		g.add(orDash(cell(string(a.Task))), orDash(cell(a.Operator)), strconv.Itoa(a.Count),
			moment(a.Due), moment(a.Opens), moment(a.Ends), what)
	}
	return text + g.render(width, !headless)
}

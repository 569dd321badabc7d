package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

// The forms of a report.
const (
	formText = "text"
	formJSON = "json"
	formCSV  = "csv"
	formHTML = "html"
)

func newReport() *cobra.Command {
	form := formText
	c := &cobra.Command{
		Use:   "report TASK",
		Short: "Tell what became of every host of a task: sums that always add up",
		Long: `report tells what became of every host that a task was for. Each host is in exactly
one part, and the parts add up to the number of hosts: what has not ended, and what
muster does not know, have parts of their own. What the time of the jobs went to is
summed up below: queued, in a window, at a gate, waiting, connecting, running,
verifying.

It works while the task runs, and for as long as history.keep says afterwards.`,
		Example: `  muster report 0wcy7y2fb2
  muster report 0wcy7y2fb2 --form csv >report.csv
  muster report 0wcy7y2fb2 --form html >report.html`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	forms := []string{formText, formJSON, formCSV, formHTML}
	c.Flags().StringVar(&form, "form", form, "text, json, csv or html")
	completeFlag(c, "form", forms...)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err != nil {
			return err
		}
		if !slices.Contains(forms, form) {
			return exit(exitUsage, fmt.Errorf("--form %q: want text, json, csv or html", form))
		}
		if s.json {
			form = formJSON
		}
		var r api.Report
		if err := s.do(ctx, call{method: http.MethodGet, bound: submitTimeout,
			path: "/v1/tasks/" + url.PathEscape(string(id)) + "/report"}, &r); err != nil {
			return err
		}
		switch form {
		case formJSON:
			return s.writeJSON(r)
		case formCSV:
			return s.reportCSV(r)
		case formHTML:
			return s.reportHTML(r)
		}
		return s.write(reportText(r, s.tableWidth(), s.colours))
	})
}

func reportText(r api.Report, width int, colours palette) string {
	t := r.Task
	var b strings.Builder
	b.WriteString(details(
		append(append([][2]string{{"task", cell(string(t.Task))}}, ranPairs(t.Runbook, t.Ran)...),
			[2]string{"on", cell(t.On)},
			[2]string{"operator", whoWords(t.Operator, t.Proven, t.Ran)},
			[2]string{"reason", cell(t.Reason)},
			[2]string{"submitted", moment(t.Submitted)},
			[2]string{"finished", moment(t.Finished)},
			[2]string{"cancelled", cell(t.Cancelled)})...))
	parts := newGrid(">HOSTS", "", "MEANS")
	for _, p := range r.Parts {
		parts.add(strconv.Itoa(p.Hosts), colours.outcome(jobs.Outcome(p.Name), cell(p.Name)),
			cell(p.Means))
	}
	parts.add(strconv.Itoa(r.Total), "hosts", "in all")
	b.WriteString("\n" + parts.render(width, false))
	if len(r.Spent) > 0 {
		b.WriteString("\n" + spentGrid(r.Spent).render(width, true))
	}
	for _, n := range r.Notes {
		b.WriteString("\nnote: " + cell(n) + "\n")
	}
	list := slices.DeleteFunc(slices.Clone(r.Jobs), func(j api.PastJob) bool {
		return j.Outcome == jobs.Succeeded
	})
	if len(list) > 0 {
		b.WriteString("\n" + pastGrid(list, colours).render(width, true))
	}
	return b.String()
}

// reportHead are the columns of a report as CSV.
var reportHead = append(strings.Fields(
	"host customer zone part class exit error note attempt node started finished"), useNames()...)

func reportRow(j api.PastJob) []string {
	part := string(j.Outcome)
	if part == "" {
		part = string(j.State)
	}
	exit := ""
	if j.ExitCode != nil {
		exit = strconv.Itoa(*j.ExitCode)
	}
	return append([]string{j.Host, j.Customer, j.Zone, part, string(j.Class), exit, j.Error, j.Note,
		strconv.Itoa(j.Attempt), j.Node, j.Started.String(), j.Finished.String()}, useCells(j.Times)...)
}

// reportCSV writes a line a host. Of whom nothing is known there is a line without a
// host, with their number, so that the lines add up too.
func (s *session) reportCSV(r api.Report) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	asked := askedCells(r.Task)
	rows := [][]string{slices.Concat(reportHead, askedHead)}
	for _, j := range r.Jobs {
		rows = append(rows, slices.Concat(reportRow(j), asked))
	}
	if missing := r.Total - len(r.Jobs); missing > 0 {
		row := make([]string, len(reportHead))
		row[3], row[7] = api.PartOfTheRest(r.Task), count(missing, "host")
		rows = append(rows, slices.Concat(row, asked))
	}
	for _, row := range rows {
		for i, text := range row {
			row[i] = harmless(cell(text))
		}
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return s.write(b.String())
}

// harmless is a text that a spreadsheet takes for text: what hosts say is anything, and
// a cell that begins with one of these is a formula.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// reportPage is a report as a page that stands for itself. The template escapes what a
// browser would obey; cell, what would turn letters around, or a terminal would obey.
var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{"cell": cell}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Task {{.Task}}</title><style>
body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}
table{border-collapse:collapse;margin:1em 0}
td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}
td.n{text-align:right}
</style></head><body>
<h1>Task {{.Task}}</h1>
<p>{{.Asked}}, submitted {{.Submitted}}, finished {{.Finished}}.</p>
<table>{{range .Ran}}<tr><th>{{index . 0}}</th><td>{{index . 1}}</td></tr>
{{end}}</table>
<table>{{range .Parts}}<tr><td class="n">{{.Hosts}}</td><td>{{cell .Name}}</td><td>{{cell .Means}}</td></tr>
{{end}}<tr><th class="n">{{.Total}}</th><th>hosts</th><th>in all</th></tr></table>
{{range .Notes}}<p>{{cell .}}</p>
{{end}}<table><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr>
{{range .Rows}}<tr>{{range .}}<td>{{cell .}}</td>{{end}}</tr>
{{end}}</table></body></html>
`))

func (s *session) reportHTML(r api.Report) error {
	rows := make([][]string, len(r.Jobs))
	for i, j := range r.Jobs {
		rows[i] = reportRow(j)
	}
	var b bytes.Buffer
	t := r.Task
	err := reportPage.Execute(&b, map[string]any{"Task": cell(string(t.Task)),
		"Asked": cell(t.Runbook) + " on " + cell(t.On) + ", by " + whoWords(t.Operator, t.Proven, t.Ran),
		"Ran":   ranPairs(t.Runbook, t.Ran),
		"Parts": r.Parts, "Total": r.Total, "Notes": r.Notes, "Head": reportHead, "Rows": rows,
		"Submitted": moment(t.Submitted), "Finished": moment(t.Finished)})
	if err != nil {
		return err
	}
	return s.write(b.String())
}

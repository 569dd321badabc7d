package ops

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
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
)

// The forms of a report.
const (
	formText = "text"
	formJSON = "json"
	formCSV  = "csv"
	formHTML = "html"
)

// NewReport makes the command report.
func NewReport() *cobra.Command {
	form := formText
	c := &cobra.Command{
		Use:   "report TASK",
		Short: "Show the result of every host of a task, in sums that always add up",
		Long: `report shows the result of every host of a task. Each host is in exactly one part, and
the parts add up to the number of hosts: jobs that have not ended, and results that
muster does not know, have parts of their own. Below are sums of the time that the jobs
spent: queued, in a window, at a gate, waiting, connecting, running, verifying.

It works while the task runs, and for as long as history.keep says afterwards.`,
		Example: `  muster report 0wcy7y2fb2
  muster report 0wcy7y2fb2 --form csv >report.csv
  muster report 0wcy7y2fb2 --form html >report.html`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	forms := []string{formText, formJSON, formCSV, formHTML}
	c.Flags().StringVar(&form, "form", form, "text, json, csv or html")
	cli.CompleteFlag(c, "form", forms...)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		if !slices.Contains(forms, form) {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--form %q: want text, json, csv or html", form))
		}
		if s.JSON {
			form = formJSON
		}
		var r api.Report
		if err := s.Do(ctx, cli.Call{Method: http.MethodGet, Bound: cli.SubmitTimeout,
			Path: "/v1/tasks/" + url.PathEscape(string(id)) + "/report"}, &r); err != nil {
			return err
		}
		switch form {
		case formJSON:
			return s.WriteJSON(r)
		case formCSV:
			return reportCSV(s.Screen, r)
		case formHTML:
			return reportHTML(s.Screen, r)
		}
		return s.Write(reportText(r, s.TableWidth(), s.Colours))
	})
}

func reportText(r api.Report, width int, colours cli.Palette) string {
	t := r.Task
	var b strings.Builder
	b.WriteString(cli.Details(
		append(append([][2]string{{"task", cli.Cell(string(t.Task))}}, watch.RanPairs(t.Runbook,
			t.Ran)...),
			[2]string{"on", cli.Cell(t.On)},
			[2]string{"operator", watch.WhoWords(t.Operator, t.Proven, t.Ran)},
			[2]string{"reason", cli.Cell(t.Reason)},
			[2]string{"submitted", cli.Moment(t.Submitted)},
			[2]string{"finished", cli.Moment(t.Finished)},
			[2]string{"cancelled", cli.Cell(t.Cancelled)})...))
	parts := cli.NewGrid(">HOSTS", "", "MEANS")
	for _, p := range r.Parts {
		parts.Add(strconv.Itoa(p.Hosts), colours.Outcome(jobs.Outcome(p.Name), cli.Cell(p.Name)),
			cli.Cell(p.Means))
	}
	parts.Add(strconv.Itoa(r.Total), "hosts", "in all")
	b.WriteString("\n" + parts.Render(width, false))
	if len(r.Spent) > 0 {
		b.WriteString("\n" + cli.SpentGrid(r.Spent).Render(width, true))
	}
	for _, n := range r.Notes {
		b.WriteString("\nnote: " + cli.Cell(n) + "\n")
	}
	list := slices.DeleteFunc(slices.Clone(r.Jobs), func(j api.PastJob) bool {
		return j.Outcome == jobs.Succeeded && j.Proof != api.NotProven
	})
	if len(list) > 0 {
		b.WriteString("\n" + pastGrid(list, colours).Render(width, true))
	}
	return b.String()
}

// reportHead lists the columns of a report as CSV.
var reportHead = append(strings.Fields(
	"host customer zone part class exit error note attempt node started finished"), cli.UseNames()...)

func reportRow(j api.PastJob) []string {
	part := string(j.Outcome)
	if part == "" {
		part = string(j.State)
	}
	if j.Proof == api.NotProven {
		j.Note = api.WithoutProof(j.Note)
	}
	exit := ""
	if j.ExitCode != nil {
		exit = strconv.Itoa(*j.ExitCode)
	}
	return append([]string{j.Host, j.Customer, j.Zone, part, string(j.Class), exit, j.Error, j.Note,
		strconv.Itoa(j.Attempt), j.Node, j.Started.String(), j.Finished.String()},
		cli.UseCells(j.Times)...)
}

// reportCSV writes one line a host. Hosts about which nothing is known have one line without a
// name, with their number, so that the lines add up.
func reportCSV(s *cli.Screen, r api.Report) error {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	asked := watch.AskedCells(r.Task)
	rows := [][]string{slices.Concat(reportHead, watch.AskedHead)}
	for _, j := range r.Jobs {
		rows = append(rows, slices.Concat(reportRow(j), asked))
	}
	if missing := r.Total - len(r.Jobs); missing > 0 {
		row := make([]string, len(reportHead))
		row[3], row[7] = api.PartOfTheRest(r.Task), cli.Count(missing, "host")
		rows = append(rows, slices.Concat(row, asked))
	}
	for _, row := range rows {
		for i, text := range row {
			row[i] = harmless(cli.Cell(text))
		}
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return s.Write(b.String())
}

// harmless makes a spreadsheet take a text for text: output of hosts may be anything, and a cell
// that begins with one of these characters is a formula.
func harmless(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}

// reportPage is a report as a complete page. The template escapes text that a browser would obey;
// cell escapes text that would reverse letters, or that a terminal would obey.
var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{"cell": cli.Cell}).Parse(`<!doctype html>
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

func reportHTML(s *cli.Screen, r api.Report) error {
	rows := make([][]string, len(r.Jobs))
	for i, j := range r.Jobs {
		rows[i] = reportRow(j)
	}
	var b bytes.Buffer
	t := r.Task
	err := reportPage.Execute(&b, map[string]any{"Task": cli.Cell(string(t.Task)),
		"Asked": cli.Cell(t.Runbook) + " on " + cli.Cell(t.On) + ", by " + watch.WhoWords(t.Operator,
			t.Proven, t.Ran),
		"Ran":   watch.RanPairs(t.Runbook, t.Ran),
		"Parts": r.Parts, "Total": r.Total, "Notes": r.Notes, "Head": reportHead, "Rows": rows,
		"Submitted": cli.Moment(t.Submitted), "Finished": cli.Moment(t.Finished)})
	if err != nil {
		return err
	}
	return s.Write(b.String())
}

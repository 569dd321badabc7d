package sheets

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/fleet"
	"muster/jobs"
	"muster/server/pages/frame"
)

// jobColumns are the columns of jobs.
var jobColumns = []string{"ended", "host", "customer", "zone", "model", "outcome", "class",
	"exit_code", "error", "runbook", "operator", "task", "attempt", "node", "started", "proof", "note"}

// pastJobs reads jobs that have ended, by the filters of the page of history.
func pastJobs(h frame.House, r *http.Request) sheet {
	return sheet{"history", jobColumns, func(cursor string) (page, error) {
		ask := url.Values{}
		for name, list := range r.URL.Query() {
			if text := strings.TrimSpace(list[0]); text != "" {
				ask.Set(name, text)
			}
		}
		ask.Set("limit", strconv.Itoa(api.PageMax))
		ask.Del("cursor")
		if cursor != "" {
			ask.Set("cursor", cursor)
		}
		var got api.PastJobs
		err := h.Get("/v1/history", ask, &got)
		return page{rowsOf(got.Jobs), got.Next}, err
	}}
}

// rowsOf returns the rows of jobs.
func rowsOf(list []api.PastJob) []row {
	rows := make([]row, len(list))
	for i, j := range list {
		exit := ""
		if j.ExitCode != nil {
			exit = strconv.Itoa(*j.ExitCode)
		}
		end := string(j.Outcome)
		if end == "" {
			end = string(j.State)
		}
		rows[i] = row{[]string{instant(j.Finished), j.Host, j.Customer, j.Zone, j.Model, end,
			string(j.Class), exit, j.Error, j.Runbook, j.Operator, string(j.ID.Task()),
			strconv.Itoa(j.Attempt), j.Node, instant(j.Started), string(j.Proof), j.Note}, j}
	}
	return rows
}

// instant returns a time for a cell; an unknown one is empty.
func instant(t jobs.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// report reads the report of a task. A host about whose job nothing is known is in its rows by its
// number only.
func report(h frame.House, r *http.Request) sheet {
	id := r.PathValue("task")
	return sheet{"task-" + id, jobColumns, func(string) (page, error) {
		var got api.Report
		err := h.Get("/v1/tasks/"+url.PathEscape(id)+"/report", nil, &got)
		rows := rowsOf(got.Jobs)
		if n := got.Total - len(got.Jobs); n > 0 {
			part := api.PartOfTheRest(got.Task)
			words := frame.Count(n, "host", "hosts") + " of the task without a job that is known"
			cells := make([]string, len(jobColumns))
			cells[slices.Index(jobColumns, "outcome")], cells[slices.Index(jobColumns, "note")] = part, words
			rows = append(rows, row{cells, map[string]any{"outcome": part, "hosts": n, "note": words}})
		}
		return page{rows: rows}, err
	}}
}

// hostColumns are the columns of hosts.
var hostColumns = []string{"name", "address", "port", "user", "customer", "zone", "group", "fence",
	"drained", "labels"}

// hosts reads the hosts that the selector ?on= picks.
func hosts(h frame.House, r *http.Request) sheet {
	on := r.URL.Query().Get("on")
	return sheet{"hosts", hostColumns, func(cursor string) (page, error) {
		got, err := frame.HostPage(h, on, cursor, frame.HostsAtOnce)
		rows := make([]row, len(got.Hosts))
		for i, one := range got.Hosts {
			drain, drained := got.Drained[one.Name]
			rows[i] = hostRow(one, drain, drained)
		}
		return page{rows, got.Next}, err
	}}
}

// hostRow returns the row of a host.
func hostRow(one fleet.Host, drain jobs.Drain, drained bool) row {
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(one.Labels)) {
		labels = append(labels, name+"="+one.Labels[name])
	}
	word := ""
	if drained {
		word = "drained"
		if drain.Note != "" {
			word += ": " + drain.Note
		}
	}
	whole := struct {
		fleet.Host

		Drained string `json:"drained,omitempty"`
	}{one, word}
	return row{[]string{one.Name, one.Address, strconv.Itoa(one.Port), one.User, one.Customer,
		one.Zone, one.Group, string(one.Fence), word, strings.Join(labels, " ")}, whole}
}

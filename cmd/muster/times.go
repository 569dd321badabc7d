package main

import (
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
)

// timesText is what the time of a job went to, each use that took any.
func timesText(t jobs.Times) string {
	var out []string
	for _, u := range jobs.Uses() {
		if d := t.Of(u); d > 0 {
			out = append(out, string(u)+" "+span(d))
		}
	}
	return strings.Join(out, ", ")
}

// jobTook is how long a job was at work; of one whose worker did not say it, or that has not
// ended, from its start on.
func jobTook(j jobs.JobInfo, now time.Time) string {
	work := j.Times.Of(jobs.Connecting, jobs.Acting, jobs.Verifying, jobs.Pausing)
	if j.State != jobs.Ended || j.Started.IsZero() || work == 0 {
		return took(j.Started, j.Finished, now)
	}
	return span(work)
}

// spentGrid is what the time of a task's jobs went to.
func spentGrid(list []api.Spent) grid {
	seconds := func(s float64) string { return span(time.Duration(s * float64(time.Second))) }
	g := newGrid("TIME", ">JOBS", ">P50", ">P90", ">MOST", ">IN ALL")
	for _, s := range list {
		g.add(cell(string(s.Use)), strconv.Itoa(s.Jobs), seconds(s.P50), seconds(s.P90), seconds(s.Max),
			seconds(s.Sum))
	}
	return g
}

// useNames are the columns of a table about jobs that say what their time went to.
func useNames() []string {
	var out []string
	for _, u := range jobs.Uses() {
		out = append(out, string(u)+"_s")
	}
	return out
}

// useCells are the seconds of a job under them.
func useCells(t jobs.Times) []string {
	var out []string
	for _, u := range jobs.Uses() {
		text := ""
		if s, ok := t[u]; ok {
			text = strconv.FormatFloat(s, 'f', 3, 64)
		}
		out = append(out, text)
	}
	return out
}

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
)

// TimesText lists the uses of a job's time, without those that took none.
func TimesText(t jobs.Times) string {
	var out []string
	for _, u := range jobs.Uses() {
		if d := t.Of(u); d > 0 {
			out = append(out, string(u)+" "+Span(d))
		}
	}
	return strings.Join(out, ", ")
}

// SpentGrid shows the uses of the time of a task's jobs.
func SpentGrid(list []api.Spent) Grid {
	seconds := func(s float64) string { return Span(time.Duration(s * float64(time.Second))) }
	g := NewGrid("TIME", ">JOBS", ">P50", ">P90", ">MOST", ">IN ALL")
	for _, s := range list {
		g.Add(Cell(string(s.Use)), strconv.Itoa(s.Jobs), seconds(s.P50), seconds(s.P90), seconds(s.Max),
			seconds(s.Sum))
	}
	return g
}

// UseNames returns the columns for the uses of a job's time.
func UseNames() []string {
	var out []string
	for _, u := range jobs.Uses() {
		out = append(out, string(u)+"_s")
	}
	return out
}

// UseCells returns the seconds of a job for these columns.
func UseCells(t jobs.Times) []string {
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

// When reads an instant as people write it: RFC 3339, a date with or without a time in the local
// zone, or +90m from now.
func When(text string) (time.Time, error) {
	if later, ok := strings.CutPrefix(text, "+"); ok {
		if d, err := time.ParseDuration(later); err == nil && d >= 0 {
			return time.Now().Add(d).Truncate(time.Second), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	for _, form := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is no time: want 2026-12-24, 2026-12-24 22:00 "+
		"(of the clocks here), 2026-12-24T21:00:00Z or +90m", text)
}

// WhenOver reads the end of something: a day alone includes that day.
func WhenOver(text string) (time.Time, error) {
	t, err := When(text)
	if _, dayErr := time.Parse(time.DateOnly, text); err == nil && dayErr == nil {
		t = t.AddDate(0, 0, 1)
	}
	return t, err
}

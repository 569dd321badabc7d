package work

import (
	"net/http"
	"net/url"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
)

// theRunbooks lists the runbooks.
func theRunbooks(h frame.House, r *http.Request) (frame.Show, error) {
	s, err := runList(h, r)
	s.Title, s.Nav = "Runbooks", "Runbooks"
	if err == nil {
		var list api.RunbookList
		err = h.Get("/v1/runbooks", nil, &list)
		s.Parts = []frame.Part{{ID: "books", Body: runbookTable(list.Runbooks)}}
	}
	return s, err
}

// bookFacts has what the page of a runbook shows.
type bookFacts struct {
	book api.RunbookDetail
	past frame.Asked[api.PastJobs]
}

// runbook shows a runbook: its arguments, what each step does, its text, its last runs.
func runbook(h frame.House, r *http.Request) (frame.Show, error) {
	name := r.PathValue("runbook")
	var f bookFacts
	if err := h.Get("/v1/runbooks/"+url.PathEscape(name), nil, &f.book); err != nil {
		return frame.Show{}, err
	}
	f.past = frame.Try[api.PastJobs](h, "/v1/history", url.Values{"runbook": {name}, "limit": {"20"}})
	return frame.Show{Title: "Runbook " + name, Nav: "Runbooks", Parts: []frame.Part{
		{ID: "book", Body: bookPart(f.book)}, {ID: "steps", Body: stepsPart(f.book)},
		{ID: "source", Body: sourcePart(f.book)}, {ID: "past", Body: pastPart(f.past)}}}, nil
}

// factsOfBook lists the rules of a runbook.
func factsOfBook(b api.RunbookDetail) []frame.Fact {
	return []frame.Fact{{Name: "Version", Value: b.Version}, {Name: "SHA-256 of its text",
		Value: b.Hash},
		{Name: "Disturbs its hosts", Value: frame.Yes(b.Disruptive)}, {Name: "May be repeated",
			Value: frame.Yes(b.Repeatable)},
		{Name: "Only in windows", Value: frame.Yes(b.Window)}, {Name: "Needs",
			Value: strings.Join(b.Needs, ", ")},
		{Name: "Bound of an attempt", Value: frame.Took(b.Timeout)}, {Name: "Expected",
			Value: frame.Took(b.Expect)},
		{Name: "Reserve for going back", Value: frame.Took(b.Reserve)}}
}

// stepNotes lists what is special about a step.
func stepNotes(s api.RunbookStep) string {
	var out []string
	add := func(is bool, words string) {
		if is {
			out = append(out, words)
		}
	}
	add(s.Disruptive, "disturbs the host")
	add(s.Repeatable, "may be repeated")
	add(s.Rescue, "only after a failure")
	add(len(s.When) > 0, "when "+strings.Join(s.When, " and "))
	add(len(s.Saves) > 0, "saves "+strings.Join(s.Saves, ", "))
	add(len(s.OnFail) > 0, "after a failure: "+strings.Join(s.OnFail, ", "))
	add(s.Dry != "", "in a dry run: "+s.Dry)
	return strings.Join(out, "; ")
}

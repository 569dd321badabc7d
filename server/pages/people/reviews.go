package people

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"muster/api"
	"muster/server/pages/frame"
)

// reviewFacts has what the page of reviews shows.
type reviewFacts struct {
	list []api.Review
	all  bool
	no   string // why the person may close none; empty: they may, except their own
}

// theReviews lists broken glass that nobody has reviewed; with all=true also what was reviewed.
func theReviews(h frame.House, r *http.Request) (frame.Show, error) {
	f := reviewFacts{all: r.URL.Query().Get("all") == "true"}
	s := frame.Show{Title: "Reviews of broken glass", Nav: "Approvals", Top: reviewsTop(f.all)}
	q := url.Values{}
	if f.all {
		q.Set("all", "true")
	}
	var list api.ReviewList
	if err := h.Get("/v1/reviews", q, &list); err != nil {
		return frame.Without(s, "Reviews", err)
	}
	f.list = list.Reviews
	for _, one := range f.list {
		if one.Closed.IsZero() && f.no == "" {
			if err := h.May(http.MethodPost, reviewPath(string(one.Task))); err != nil {
				f.no = err.Error()
			}
		}
	}
	s.Parts = []frame.Part{{ID: "reviews", Live: true, Body: reviewTable(f)}}
	return s, nil
}

func reviewPath(task string) string { return "/v1/reviews/" + url.PathEscape(task) }

// review finds out which review would be closed.
func review(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("task")
	var list api.ReviewList
	if err := h.Get("/v1/reviews", nil, &list); err != nil {
		return frame.Asking{}, err
	}
	i := slices.IndexFunc(list.Reviews, func(v api.Review) bool { return string(v.Task) == id })
	if i < 0 {
		return frame.Asking{}, frame.Refusal(http.StatusNotFound, "task %s has no open review", id)
	}
	v := list.Reviews[i]
	a := frame.Asking{Word: "review", Title: "Close the review: task " + id, Nav: "Approvals",
		Back: "/reviews?all=true", Method: http.MethodPost, Path: reviewPath(id), Reason: true,
		Target: frame.Target{N: 1, Noun: "review", Set: frame.SetOf("review", v.Task, v.Who, v.At)}}
	a.Hit("%s broke the glass at %s and ran task %s alone. The reason that they gave: %s", v.Who,
		v.At.UTC().Format(frame.TextForm), id, v.Reason)
	a.Hit("Somebody else closes the review. Say in the reason what you have looked at, and what you " +
		"found: it stays in the audit log.")
	a.Body = func(form url.Values) any {
		return api.ReviewRequest{Words: strings.TrimSpace(form.Get("reason"))}
	}
	return a, nil
}

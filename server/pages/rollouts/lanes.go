package rollouts

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"muster/api"
	"muster/server/pages/frame"
)

// lanesShown bounds the lanes, and the tasks of each, that a page shows.
const (
	lanesShown     = 50
	laneTasksShown = 50
)

// lanesFacts has what the page of lanes shows.
type lanesFacts struct {
	lanes []api.LaneInfo
	more  int               // lanes that are not shown
	may   map[string]string // by task that failed: why the person may not let its lane continue
	q     url.Values
}

// theLanes shows the lanes, those first that wait for a person.
func theLanes(h frame.House, r *http.Request) (frame.Show, error) {
	f := lanesFacts{q: r.URL.Query(), may: map[string]string{}}
	ask := frame.Ask(f.q, 0, "key", "task")
	ask.Del("limit")
	s := frame.Show{Title: "Lanes", Nav: "Lanes", Top: lanesTop(f.q)}
	var list api.LaneList
	if err := h.Get("/v1/lanes", ask, &list); err != nil {
		return frame.Without(s, "Lanes", err)
	}
	slices.SortStableFunc(list.Lanes, func(a, b api.LaneInfo) int { return rank(a) - rank(b) })
	f.more = max(0, len(list.Lanes)-lanesShown)
	f.lanes = list.Lanes[:len(list.Lanes)-f.more]
	f.lookAtOrders(h)
	s.Parts = []frame.Part{{ID: "lanes", Live: true, Body: lanesPart(f)}}
	return s, nil
}

// rank puts lanes that wait for a person before others.
func rank(l api.LaneInfo) int {
	if l.Stuck != "" {
		return 0
	}
	return 1
}

// lookAtOrders finds out behind which failures the person may let lanes continue.
func (f lanesFacts) lookAtOrders(h frame.House) {
	for _, l := range f.lanes {
		for _, t := range l.Tasks {
			if l.Stuck != "" && t.State == "failed" {
				why := ""
				if err := h.May(http.MethodPost, continuePath(string(t.Task))); err != nil {
					why = err.Error()
				}
				f.may[string(t.Task)] = why
			}
		}
	}
}

// continuePath returns the request that lets a lane continue without a task.
func continuePath(task string) string {
	return "/v1/tasks/" + url.PathEscape(task) + "/lane/continue"
}

// laneName returns the name of a lane for people.
func laneName(l api.LaneInfo) string {
	if l.Customer == "" {
		return l.Key + ", of the house"
	}
	return l.Key + ", of customer " + l.Customer
}

// continueOrder finds out what it would hit to let a lane continue behind a task that failed.
func continueOrder(h frame.House, r *http.Request) (frame.Asking, error) {
	id := r.PathValue("task")
	var list api.LaneList
	if err := h.Get("/v1/lanes", url.Values{"task": {id}}, &list); err != nil {
		return frame.Asking{}, err
	}
	a := frame.Asking{Word: "continue", Title: "Let the lane continue: without task " + id,
		Nav: "Lanes", Back: "/lanes", Method: http.MethodPost, Path: continuePath(id),
		Body: frame.ReasonOnly, Reason: true, Target: frame.Target{Noun: "task"}}
	var set []any
	for _, l := range list.Lanes {
		a.Back = "/lanes?key=" + url.QueryEscape(l.Key)
		a.Hit("Lane %s.", laneName(l))
		behind := 0
		for _, t := range l.Tasks {
			set = append(set, t.Task, t.State)
			switch {
			case string(t.Task) == id && t.State == "failed":
				a.Hit("Task %s (%s, of %s) has failed and leaves the lane. Nothing of it is done again, and "+
					"nothing of it is taken back: look first at what it left on its hosts.", id, t.Runbook, t.By)
			case string(t.Task) == id:
				a.Hit("Task %s is %s: it does not hold up the lane by a failure.", id, t.State)
			case t.State == "waiting" || t.State == "submitting":
				behind++
			}
		}
		a.N += behind
		a.Hit("%s behind it, as far as you may see them. The first of them begins, unless it waits for "+
			"others.", frame.Count(behind, "task waits", "tasks wait"))
	}
	if len(list.Lanes) == 0 {
		a.Hit("Task %s is in no lane that you see.", id)
	}
	a.Set = frame.SetOf(append([]any{"continue", id}, set...)...)
	return a, nil
}

// placeOf returns the place of a task in its lane, from 1.
func placeOf(i int) string { return strconv.Itoa(i + 1) }

package arrivals

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
)

// An answer is what a task came to that an event started.
type answer struct {
	Trigger string       `json:"trigger"`
	Task    string       `json:"task"`
	Summary *api.Summary `json:"summary"`         // null: it could not be read
	Error   string       `json:"error,omitempty"` // why not
}

const (
	// answersMax bounds the tasks of an event whose answers are read.
	answersMax = 5
	// answerBytes bounds the output of hosts that is shown of a group.
	answerBytes = 2000
)

// answers reads what the tasks came to that an event started, and counts those that are left out.
func answers(ctx context.Context, s *cli.Session, e api.Event) (list []answer, more int) {
	for _, f := range e.Work.Firings {
		list = append(list, answer{Trigger: f.Trigger, Task: f.Task})
	}
	// A trigger that collects events has fired later.
	var later api.FiringList
	if slices.ContainsFunc(list, func(a answer) bool { return a.Task == "" }) {
		q := url.Values{"event": {e.Event}, "limit": {"100"}}
		if err := s.Get(ctx, "/v1/firings", q, &later); err != nil {
			later.Firings = nil // what the event itself has is shown
		}
	}
	for _, f := range later.Firings {
		for i := range list {
			if list[i].Trigger == f.Trigger && list[i].Task == "" {
				list[i].Task = string(f.Task)
			}
		}
	}
	list = slices.DeleteFunc(list, func(a answer) bool { return a.Task == "" })
	more = max(0, len(list)-answersMax)
	list = list[:len(list)-more]
	for i := range list {
		var sum api.Summary
		err := s.Get(ctx, "/v1/tasks/"+url.PathEscape(list[i].Task)+"/summary",
			url.Values{"excerpt": {strconv.Itoa(answerBytes)}}, &sum)
		if err != nil {
			list[i].Error = err.Error()
			continue
		}
		list[i].Summary = &sum
	}
	return list, more
}

func answersText(s *cli.Session, list []answer, more int) string {
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "\n%s has started:\n", cli.Cell(a.Trigger))
		if a.Summary == nil {
			fmt.Fprintf(&b, "task %s: it cannot be shown: %s\n", cli.Cell(a.Task), cli.Cell(a.Error))
			continue
		}
		b.WriteString(watch.SummaryText(*a.Summary, s.TableWidth(), s.Colours))
	}
	if more > 0 {
		fmt.Fprintf(&b, "\n%d more tasks are not shown: muster task TASK says what each came to\n",
			more)
	}
	return b.String()
}

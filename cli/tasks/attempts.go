package tasks

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// An AttemptDetail is an attempt with the steps that it began after its first.
type AttemptDetail struct {
	api.Attempt
	Steps []api.StepBegun `json:"steps"`
}

// AttemptList is the answer of `muster job --attempts` for JSON. Other has the steps that belong to
// no attempt which history knows.
type AttemptList struct {
	Job      jobs.ID         `json:"job"`
	Attempts []AttemptDetail `json:"attempts"`
	Other    []api.StepBegun `json:"other_steps"`
	Doubted  string          `json:"doubted,omitempty"`
}

// showAttempts prints the attempts of a job, from history.
func showAttempts(ctx context.Context, s *cli.Session, id jobs.ID) error {
	var c api.Course
	if err := s.Get(ctx, "/v1/jobs/"+url.PathEscape(string(id))+"/course", nil, &c); err != nil {
		return err
	}
	list := byAttempt(id, c)
	if c.Doubted != "" {
		s.Say("look: %s", cli.Cell(c.Doubted))
	}
	err := error(nil)
	if s.JSON {
		err = s.WriteJSON(list)
	} else if len(list.Attempts)+len(list.Other) > 0 {
		err = s.Write(attemptGrid(list, s.Now()).Render(s.TableWidth(), true))
	}
	if err == nil && len(list.Attempts) == 0 {
		err = cli.Exit(cli.ExitNotAll, fmt.Errorf("history has no attempt of %s: it has not begun, or "+
			"its beginning is not stored; `muster job %s` shows its state, `muster history gaps` what "+
			"history lacks", id, id))
	}
	return err
}

// byAttempt puts each step to the attempt in whose time it was begun.
func byAttempt(id jobs.ID, c api.Course) AttemptList {
	out := AttemptList{Job: id, Attempts: []AttemptDetail{}, Other: []api.StepBegun{},
		Doubted: c.Doubted}
	for _, a := range c.Attempts {
		out.Attempts = append(out.Attempts, AttemptDetail{a, []api.StepBegun{}})
	}
	for _, b := range c.Steps {
		of := &out.Other
		for i, a := range out.Attempts {
			begun := !a.Started.IsZero() && !b.At.Before(a.Started.Time)
			if begun && (a.Ended.IsZero() || !b.At.After(a.Ended.Time)) {
				of = &out.Attempts[i].Steps
			}
		}
		*of = append(*of, b)
	}
	return out
}

func attemptGrid(l AttemptList, now time.Time) cli.Grid {
	g := cli.NewGrid(">ATTEMPT", "NODE", "STARTED", "ENDED", ">TOOK", "HOW", "STEPS")
	steps := func(list []api.StepBegun, from jobs.Time) string {
		words := make([]string, len(list))
		for i, b := range list {
			words[i] = strconv.Itoa(b.Step)
			if !from.IsZero() {
				words[i] += " after " + cli.Span(b.At.Sub(from.Time))
			}
		}
		return cli.OrDash(strings.Join(words, ", "))
	}
	for _, a := range l.Attempts {
		took, how := "-", a.How
		switch {
		case a.Started.IsZero():
		case !a.Ended.IsZero():
			took = cli.Span(max(0, a.Ended.Sub(a.Started.Time)))
		default:
			took, how = cli.Span(max(0, now.Sub(a.Started.Time))), "its end is not stored"
		}
		g.Add(strconv.Itoa(a.Attempt.Attempt), cli.OrDash(cli.Cell(a.Node)), cli.Moment(a.Started),
			cli.Moment(a.Ended), took, cli.OrDash(cli.Cell(how)), steps(a.Steps, a.Started))
	}
	if len(l.Other) > 0 {
		g.Add("?", "-", "-", "-", "-", "its attempt is not stored", steps(l.Other, jobs.Time{}))
	}
	return g
}

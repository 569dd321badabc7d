package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"muster/api"
	"muster/jobs"
)

// askFlags are those of muster job --ask.
type askFlags struct {
	ask, unknown bool
	reason       string
	timeout      time.Duration
}

// askTimeout is how long the answer is awaited by itself. A worker that looks has a minute.
const askTimeout = 2 * time.Minute

// check reports everything that is wrong with the flags, and reads what they are about: jobs,
// or with --unknown a task.
func (f askFlags) check(args []string) (list []jobs.ID, task jobs.TaskID, err error) {
	var errs []error
	switch {
	case !f.ask && (f.unknown || f.reason != ""):
		errs = append(errs, errors.New("--unknown and --reason go with --ask"))
	case f.timeout <= 0:
		errs = append(errs, fmt.Errorf("--timeout %s: want a time such as 30s or 5m", f.timeout))
	}
	if f.ask && f.unknown {
		if len(args) > 1 {
			errs = append(errs, fmt.Errorf("--unknown takes one task, not %d", len(args)))
		}
		task, err = taskArg(args[0])
		return nil, task, exitJoined(append(errs, err))
	}
	for _, text := range args {
		id, err := jobArg(text)
		errs = append(errs, err)
		list = append(list, id)
	}
	return list, "", exitJoined(errs)
}

func exitJoined(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return exit(exitUsage, err)
	}
	return nil
}

// askedJob is what came of asking a host about a job, as JSON shows it.
type askedJob struct {
	Job     jobs.ID      `json:"job"`
	Outcome jobs.Outcome `json:"outcome"` // as it is known now
	Class   jobs.Class   `json:"class,omitempty"`
	Error   string       `json:"error"`
	Settled bool         `json:"settled"` // it is known how it ended
	Ask     *jobs.Ask    `json:"ask"`     // null: there was nothing to ask
	Frozen  string       `json:"frozen_group,omitempty"`

	awaited bool // its answer is not there
}

// askHosts orders that the hosts of jobs are asked, and waits for the answers.
func (s *session) askHosts(ctx context.Context, f askFlags, list []jobs.ID,
	task jobs.TaskID) error {
	if task != "" {
		found, err := s.jobs(ctx, task, jobs.Ended, jobs.Unknown)
		if err != nil {
			return err
		}
		for _, j := range found {
			list = append(list, j.ID)
		}
	}
	all := make([]askedJob, len(list))
	for i, id := range list {
		var did jobs.AskOrdered
		err := s.order(ctx, "/v1/jobs/"+url.PathEscape(string(id))+"/ask", f.reason, &did)
		if err != nil {
			return err
		}
		all[i] = askedJob{Job: id, awaited: did.Known == "", Outcome: jobs.Unknown}
	}
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := s.awaitAnswers(within, all)
	if err != nil && (within.Err() == nil || ctx.Err() != nil) {
		return err
	}
	return s.tellAnswers(ctx, f, all)
}

// awaitAnswers waits until all orders are answered, and says of each what came of it.
func (s *session) awaitAnswers(ctx context.Context, all []askedJob) error {
	told := make([]bool, len(all))
	for pace := paceStep; ; pace = min(2*pace, 4*paceMost) {
		open := 0
		for i := range all {
			if told[i] {
				continue
			}
			j, err := again(ctx, s.patience, func() (api.JobDetail, error) {
				var j api.JobDetail
				return j, s.get(ctx, "/v1/jobs/"+url.PathEscape(string(all[i].Job)), nil, &j)
			}, nil)
			if err != nil {
				return err
			}
			all[i].take(j.JobInfo)
			if all[i].awaited {
				open++
				continue
			}
			told[i] = true
			if !s.json {
				if err := s.write(all[i].text()); err != nil {
					return err
				}
			}
		}
		if open == 0 {
			return nil
		}
		if !sleep(ctx, pace) {
			return ctx.Err()
		}
	}
}

// take notes how a job stands.
func (a *askedJob) take(j jobs.JobInfo) {
	a.Outcome, a.Class, a.Error, a.Ask = j.Outcome, j.Class, j.Error, j.Ask
	a.Settled = j.State == jobs.Ended && j.Outcome != jobs.Unknown
	a.awaited = !a.Settled && (j.Ask == nil || j.Ask.Answered.IsZero())
}

// text is a line about a job of which it is known what came of the order.
func (a askedJob) text() string {
	id := cell(string(a.Job))
	if a.Settled {
		words := ""
		if a.Error != "" {
			words = ": " + cell(a.Error)
		}
		return fmt.Sprintf("job %s: it ended %s%s\n", id, cell(string(a.Outcome)), words)
	}
	return fmt.Sprintf("job %s stays unknown: %s: %s\n", id, answerWords(a.Ask.Answer),
		cell(a.Ask.Words))
}

// askText is what came of the last order to ask the host of a job; empty: there was none.
func askText(a *jobs.Ask) string {
	switch {
	case a == nil:
		return ""
	case a.Answered.IsZero():
		return fmt.Sprintf("%s, %s: no worker has looked yet", moment(a.At), cell(a.Note))
	case a.Answer == jobs.AnswerSettled || a.Answer == jobs.AnswerKnown:
		return fmt.Sprintf("%s, %s: %s", moment(a.Answered), cell(a.Note), cell(a.Words))
	}
	return fmt.Sprintf("%s, %s: %s: %s", moment(a.Answered), cell(a.Note), answerWords(a.Answer),
		cell(a.Words))
}

// answerWords says in words how an order was answered.
func answerWords(a jobs.Answer) string {
	switch a {
	case jobs.AnswerRunning:
		return "it is at work"
	case jobs.AnswerGone:
		return "nothing of it is alive, and its end was not seen"
	case jobs.AnswerUntold:
		return "there is no record that could tell"
	case jobs.AnswerLater:
		return "the record is of another attempt"
	case jobs.AnswerUnreachable:
		return "the host could not be asked"
	case jobs.AnswerBusy:
		return "the host is busy"
	case jobs.AnswerNobody:
		return "nobody has looked"
	}
	return "the record leaves it open"
}

// tellAnswers sums up: groups that stay frozen, and orders that nobody has carried out yet.
func (s *session) tellAnswers(ctx context.Context, f askFlags, all []askedJob) error {
	if err := s.stillFrozen(ctx, all); err != nil {
		return err
	}
	if s.json {
		if err := s.writeJSON(all); err != nil {
			return err
		}
	} else if err := s.write(frozenText(all)); err != nil {
		return err
	}
	if len(all) == 0 && !s.json {
		return s.write("no job of it ended unknown\n")
	}
	waits := 0
	for _, a := range all {
		if a.awaited {
			waits++
		}
	}
	switch {
	case waits > 0:
		return exit(exitNotAll, fmt.Errorf("%s had no answer within %s: a worker of the zone has to "+
			"come by, which none does in a halt or a pause of the zone: muster queue; the order stands "+
			"for 10 minutes, and can be given again", count(waits, "order"), f.timeout))
	case slices.ContainsFunc(all, func(a askedJob) bool { return !a.Settled }):
		return exitWith(exitNotAll)
	}
	return nil
}

// stillFrozen finds the groups that these jobs have frozen.
func (s *session) stillFrozen(ctx context.Context, all []askedJob) error {
	var list api.GroupList
	if err := s.get(ctx, "/v1/groups", nil, &list); err != nil {
		return err
	}
	for i := range all {
		for _, g := range list.Groups {
			if g.Frozen != "" && g.Job == all[i].Job {
				all[i].Frozen = g.Name
			}
		}
	}
	return nil
}

func frozenText(all []askedJob) string {
	var names []string
	for _, a := range all {
		if a.Frozen != "" && !slices.Contains(names, a.Frozen) {
			names = append(names, a.Frozen)
		}
	}
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("group %s stays frozen: look at its hosts, then "+
			"`muster group clear %s --reason …`\n", cell(name), cell(name))
	}
	return text
}

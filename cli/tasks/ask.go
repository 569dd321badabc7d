package tasks

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
)

// askFlags are the flags of muster job --ask.
type askFlags struct {
	ask, unknown bool
	reason       string
	timeout      time.Duration
}

// askTimeout bounds the wait for an answer. A worker has a minute to look.
const askTimeout = 2 * time.Minute

// check reports all mistakes in the flags, and reads the arguments: jobs, or with --unknown a task.
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
		task, err = cli.TaskArg(args[0])
		return nil, task, exitJoined(append(errs, err))
	}
	for _, text := range args {
		id, err := cli.JobArg(text)
		errs = append(errs, err)
		list = append(list, id)
	}
	return list, "", exitJoined(errs)
}

func exitJoined(errs []error) error {
	if err := errors.Join(errs...); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	return nil
}

// AskedJob is the result of asking a host about a job, for JSON.
type AskedJob struct {
	Job     jobs.ID      `json:"job"`
	Outcome jobs.Outcome `json:"outcome"` // as it is known now
	Class   jobs.Class   `json:"class,omitempty"`
	Error   string       `json:"error"`
	Settled bool         `json:"settled"` // the end of the job is known
	Ask     *jobs.Ask    `json:"ask"`     // null: there was nothing to ask
	Frozen  string       `json:"frozen_group,omitempty"`

	awaited bool // there is no answer yet
}

// askHosts orders to ask the hosts of jobs, and waits for the answers.
func askHosts(ctx context.Context, s *cli.Session, f askFlags, list []jobs.ID,
	task jobs.TaskID) error {
	if task != "" {
		found, err := s.Jobs(ctx, task, jobs.Ended, jobs.Unknown)
		if err != nil {
			return err
		}
		for _, j := range found {
			list = append(list, j.ID)
		}
	}
	all := make([]AskedJob, len(list))
	for i, id := range list {
		var did jobs.AskOrdered
		err := s.Order(ctx, "/v1/jobs/"+url.PathEscape(string(id))+"/ask", f.reason, &did)
		if err != nil {
			return err
		}
		all[i] = AskedJob{Job: id, awaited: did.Known == "", Outcome: jobs.Unknown}
	}
	within, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	err := awaitAnswers(within, s, all)
	if err != nil && (within.Err() == nil || ctx.Err() != nil) {
		return err
	}
	return tellAnswers(ctx, s, f, all)
}

// awaitAnswers waits until all orders are answered, and prints each result.
func awaitAnswers(ctx context.Context, s *cli.Session, all []AskedJob) error {
	told := make([]bool, len(all))
	for pace := watch.PaceStep; ; pace = min(2*pace, 4*watch.PaceMost) {
		open := 0
		for i := range all {
			if told[i] {
				continue
			}
			j, err := cli.Again(ctx, s.Patience, func() (api.JobDetail, error) {
				var j api.JobDetail
				return j, s.Get(ctx, "/v1/jobs/"+url.PathEscape(string(all[i].Job)), nil, &j)
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
			if !s.JSON {
				if err := s.Write(all[i].text()); err != nil {
					return err
				}
			}
		}
		if open == 0 {
			return nil
		}
		if !cli.Sleep(ctx, pace) {
			return ctx.Err()
		}
	}
}

// take notes the state of a job.
func (a *AskedJob) take(j jobs.JobInfo) {
	a.Outcome, a.Class, a.Error, a.Ask = j.Outcome, j.Class, j.Error, j.Ask
	a.Settled = j.State == jobs.Ended && j.Outcome != jobs.Unknown
	a.awaited = !a.Settled && (j.Ask == nil || j.Ask.Answered.IsZero())
}

// text describes, in one line, a job whose order has a result.
func (a AskedJob) text() string {
	id := cli.Cell(string(a.Job))
	if a.Settled {
		words := ""
		if a.Error != "" {
			words = ": " + cli.Cell(a.Error)
		}
		return fmt.Sprintf("job %s: it ended %s%s\n", id, cli.Cell(string(a.Outcome)), words)
	}
	return fmt.Sprintf("job %s stays unknown: %s: %s\n", id, answerWords(a.Ask.Answer),
		cli.Cell(a.Ask.Words))
}

// askText describes the result of the last order to ask the host of a job; empty: there was none.
func askText(a *jobs.Ask) string {
	switch {
	case a == nil:
		return ""
	case a.Answered.IsZero():
		return fmt.Sprintf("%s, %s: no worker has looked yet", cli.Moment(a.At), cli.Cell(a.Note))
	case a.Answer == jobs.AnswerSettled || a.Answer == jobs.AnswerKnown:
		return fmt.Sprintf("%s, %s: %s", cli.Moment(a.Answered), cli.Cell(a.Note), cli.Cell(a.Words))
	}
	return fmt.Sprintf("%s, %s: %s: %s", cli.Moment(a.Answered), cli.Cell(a.Note),
		answerWords(a.Answer),
		cli.Cell(a.Words))
}

// answerWords describes the answer to an order.
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

// tellAnswers prints the groups that stay frozen, and the orders that nobody has carried out yet.
func tellAnswers(ctx context.Context, s *cli.Session, f askFlags, all []AskedJob) error {
	if err := stillFrozen(ctx, s.Client, all); err != nil {
		return err
	}
	if s.JSON {
		if err := s.WriteJSON(all); err != nil {
			return err
		}
	} else if err := s.Write(frozenText(all)); err != nil {
		return err
	}
	if len(all) == 0 && !s.JSON {
		return s.Write("no job of it ended unknown\n")
	}
	waits := 0
	for _, a := range all {
		if a.awaited {
			waits++
		}
	}
	switch {
	case waits > 0:
		return cli.Exit(cli.ExitNotAll, fmt.Errorf(
			"%s had no answer within %s: a worker of the zone must take "+
				"it, which none does in a halt or a pause of the zone: see muster queue; the order holds "+
				"for 10 minutes, and can be given again", cli.Count(waits, "order"), f.timeout))
	case slices.ContainsFunc(all, func(a AskedJob) bool { return !a.Settled }):
		return cli.ExitWith(cli.ExitNotAll)
	}
	return nil
}

// stillFrozen returns the groups that these jobs have frozen.
func stillFrozen(ctx context.Context, c *cli.Client, all []AskedJob) error {
	var list api.GroupList
	if err := c.Get(ctx, "/v1/groups", nil, &list); err != nil {
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

func frozenText(all []AskedJob) string {
	var names []string
	for _, a := range all {
		if a.Frozen != "" && !slices.Contains(names, a.Frozen) {
			names = append(names, a.Frozen)
		}
	}
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("group %s stays frozen: look at its hosts, then "+
			"`muster group clear %s --reason …`\n", cli.Cell(name), cli.Cell(name))
	}
	return text
}

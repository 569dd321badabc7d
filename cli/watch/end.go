package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// Conclude prints the summary of an ended task, and returns its exit code.
func Conclude(ctx context.Context, s *cli.Session, t jobs.TaskInfo) error {
	sum, err := Summary(ctx, s.Client, t.Task, 0)
	if err != nil {
		s.Say("there is no summary: %s", cli.Cell(err.Error()))
		sum = api.Summary{Task: t}
	}
	if err := s.Write(SummaryText(sum, s.TableWidth(), s.Colours)); err != nil {
		return err
	}
	if hint := nextLook(t); hint != "" {
		s.Say("%s", hint)
	}
	return cli.ExitWith(ExitOf(t))
}

// nextLook returns the one thing to do next about a task with a failure; empty if there is nothing
// to do.
func nextLook(t jobs.TaskInfo) string {
	for _, o := range jobs.Outcomes() {
		if n := t.Outcomes[o]; n > 0 && o != jobs.Succeeded && o != jobs.Skipped && o != jobs.Cancelled {
			return fmt.Sprintf("look closer with `muster jobs %s --outcome %s`", cli.Cell(string(t.Task)), o)
		}
	}
	return ""
}

// Wait follows a task to its end, or for so long; 0: without a limit.
func Wait(ctx context.Context, s *cli.Session, id jobs.TaskID, timeout time.Duration) error {
	within, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		within, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	t, err := FirstNews(within, s, id)
	if err == nil {
		t, err = Follow(within, s, t)
	}
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return giveUp(ctx, s, id, timeout)
	case err != nil:
		return err
	}
	return Finish(ctx, s, t)
}

// giveUp describes a task that has not ended in time, and what keeps it: a second wait for a
// stopped task might never end.
func giveUp(ctx context.Context, s *cli.Session, id jobs.TaskID, timeout time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, bannerTimeout)
	defer cancel()
	t, err := s.Task(soon, id, 0, 0)
	switch {
	case err != nil:
		return cli.Exit(cli.ExitNotAll, fmt.Errorf(
			"it is not known whether task %s has ended after %s: %w", id,
			timeout, err))
	case Over(t):
		return Finish(ctx, s, t)
	}
	keeps := standstillWords(soon, s.Client, t)
	if s.JSON {
		if err := s.WriteJSON(t); err != nil {
			return err
		}
	}
	return cli.Exit(cli.ExitNotAll, fmt.Errorf("task %s has not ended after %s: %s", id, timeout,
		openWords(t, keeps)))
}

// openWords says whether an open task continues by itself. keeps names what some of its jobs wait
// for; empty: nothing that is known.
func openWords(t jobs.TaskInfo, keeps string) string {
	words := "it runs on"
	if t.Running == 0 {
		words = "none of its jobs runs"
	}
	if keeps == "" && t.Running == 0 {
		keeps = "for their time, or for a worker"
	}
	if keeps != "" {
		words += "; it waits: " + keeps
	}
	return words
}

// FirstNews returns the first state of a task to follow. A caller that waits for hours can wait for
// a server whose Redis is away; a server that does not answer at all is an error at once.
func FirstNews(ctx context.Context, s *cli.Session, id jobs.TaskID) (jobs.TaskInfo, error) {
	return cli.Again(ctx, s.Patience, func() (jobs.TaskInfo, error) {
		t, err := s.Task(ctx, id, 0, 0)
		var away *cli.AwayError
		if errors.As(err, &away) {
			err = backoff.Permanent(err)
		}
		return t, err
	}, func(err error, _ time.Duration) { s.Say("%s", cli.TroubleWords(err)) })
}

// ToTheEnd follows a task and reports its end.
func ToTheEnd(ctx context.Context, s *cli.Session, t jobs.TaskInfo) error {
	end, err := Follow(ctx, s, t)
	if err != nil {
		return err
	}
	return Finish(ctx, s, end)
}

// Finish reports the end of a task, also by the exit code.
func Finish(ctx context.Context, s *cli.Session, end jobs.TaskInfo) error {
	if !s.JSON {
		return Conclude(ctx, s, end)
	}
	if err := s.WriteJSON(end); err != nil {
		return err
	}
	return cli.ExitWith(ExitOf(end))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/spf13/cobra"

	"muster/jobs"
)

func newWait() *cobra.Command {
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait TASK",
		Short: "Wait for the end of a task; exit codes as those of run",
		Long: `wait follows a task to its end and prints the summary. If the time is over before,
it says what the task waits for, and with -o json prints the task as it is.

Exit codes: 0 all jobs succeeded, 1 some did not or the time was over, 3 the server does
not answer, 4 cancelled or stopped by a rule, 130 interrupted (the task runs on).`,
		Example: `  muster wait 0wcy7y2fb2
  muster wait 0wcy7y2fb2 --timeout 30m -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeTasks,
	}
	c.Flags().DurationVar(&timeout, "timeout", 0, "give up after this `time`; the task is left alone")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err != nil {
			return err
		}
		if timeout < 0 {
			return exit(exitUsage, fmt.Errorf("--timeout %s: want a time such as 90s or 30m", timeout))
		}
		return s.wait(ctx, id, timeout)
	})
}

// wait follows a task to its end, or for so long; 0: as long as it takes.
func (s *session) wait(ctx context.Context, id jobs.TaskID, timeout time.Duration) error {
	within, cancel := ctx, context.CancelFunc(func() {})
	if timeout > 0 {
		within, cancel = context.WithTimeout(ctx, timeout)
	}
	defer cancel()
	t, err := s.first(within, id)
	if err == nil {
		t, err = s.follow(within, t)
	}
	switch {
	case err != nil && within.Err() != nil && ctx.Err() == nil:
		return s.giveUp(ctx, id, timeout)
	case err != nil:
		return err
	}
	return s.finish(ctx, t)
}

// giveUp tells how a task is that has not ended in time, and what keeps it: who comes back
// later may wait for ever for one that stands.
func (s *session) giveUp(ctx context.Context, id jobs.TaskID, timeout time.Duration) error {
	soon, cancel := context.WithTimeout(ctx, bannerTimeout)
	defer cancel()
	t, err := s.task(soon, id, 0, 0)
	switch {
	case err != nil:
		return exit(exitNotAll, fmt.Errorf("it is not known whether task %s has ended after %s: %w", id,
			timeout, err))
	case over(t):
		return s.finish(ctx, t)
	}
	keeps := s.standstillWords(soon, t)
	if s.json {
		if err := s.writeJSON(t); err != nil {
			return err
		}
	}
	return exit(exitNotAll, fmt.Errorf("task %s has not ended after %s: %s", id, timeout,
		openWords(t, keeps)))
}

// openWords says whether a task that has not ended goes on by itself. keeps is what some of
// its jobs wait for; empty: for nothing, as far as is known.
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

// first is the first news of a task that is to be followed. Who waits for hours can wait
// for a server whose Redis is away; one that does not answer at all is said at once.
func (s *session) first(ctx context.Context, id jobs.TaskID) (jobs.TaskInfo, error) {
	return again(ctx, s.patience, func() (jobs.TaskInfo, error) {
		t, err := s.task(ctx, id, 0, 0)
		var away *awayError
		if errors.As(err, &away) {
			err = backoff.Permanent(err)
		}
		return t, err
	}, func(err error, _ time.Duration) { s.say("%s", troubleWords(err)) })
}

// toTheEnd follows a task and tells how it ended.
func (s *session) toTheEnd(ctx context.Context, t jobs.TaskInfo) error {
	end, err := s.follow(ctx, t)
	if err != nil {
		return err
	}
	return s.finish(ctx, end)
}

// finish tells how a task ended, by its exit code, too.
func (s *session) finish(ctx context.Context, end jobs.TaskInfo) error {
	if !s.json {
		return s.conclude(ctx, end)
	}
	if err := s.writeJSON(end); err != nil {
		return err
	}
	return exitWith(exitOf(end))
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/jobs"
)

func newRollout() *cobra.Command {
	c := &cobra.Command{
		Use:   "rollout",
		Short: "Tasks that go out by a rule or in waves: show, stop, let them go on",
		Long: `A task with --max-failed, --breaker, --canary or --waves stops when its rule breaks:
what has begun goes on to its end, and nothing else begins until a person says so.`,
		Example: `  muster run exec --on role=fw --arg cmd=reload --max-failed 5
  muster rollout ls
  muster rollout show 0wcy7y2fb2
  muster rollout stop 0wcy7y2fb2 --reason 'fw17 drops traffic'
  muster rollout next 0wcy7y2fb2 --max-failed 10 --reason 'the six are old ones'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newRolloutList(), newRolloutShow(), newRolloutStop(), newRolloutNext(),
		newRolloutChains(), newRolloutUndo())
	return c
}

func newRolloutList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List tasks with a rule or waves that have not ended",
		Example: `  muster rollout ls
  muster rollout ls -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, _ []string) error {
		list, err := s.rollouts(ctx)
		if err != nil {
			return err
		}
		return s.list(list, rolloutGrid(list, s.colours),
			"no task with a rule or waves is on its way")
	})
}

func (c *client) rollouts(ctx context.Context) ([]jobs.TaskInfo, error) {
	var l api.TaskList
	err := c.get(ctx, "/v1/rollouts", nil, &l)
	return filled(l.Tasks), err
}

func rolloutGrid(list []jobs.TaskInfo, colours palette) grid {
	g := newGrid("TASK", "RUNBOOK", "OPERATOR", "STATE", "WAVE", ">DONE", ">TOTAL", ">FAILED",
		">BEGUN", "RULE", "WHY")
	for _, t := range list {
		if t.Rollout == nil {
			continue // nonsense of a server
		}
		r := *t.Rollout
		state, failed := cell(string(t.State)), fmt.Sprint(r.Failed)
		if t.State == jobs.TaskStopped {
			state = colours.paint(yellow, state)
		}
		if r.Failed > 0 {
			failed = colours.paint(red, failed)
		}
		wave := "-"
		if len(r.Waves) > 0 {
			wave = fmt.Sprintf("%d of %d", r.Wave, len(r.Waves))
		}
		g.add(cell(string(t.Task)), cell(t.Runbook), cell(t.Operator), state, wave,
			fmt.Sprint(t.Outcomes.Sum()), fmt.Sprint(t.Total), failed, fmt.Sprint(r.Begun),
			orDash(fit(shortRule(r.Rule), 60)), orDash(fit(cell(r.Stopped), lineColumns)))
	}
	return g
}

func newRolloutShow() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:   "show TASK",
		Short: "Show by which rule a task goes out, how far it is, and what it waits for",
		Example: `  muster rollout show 0wcy7y2fb2
  muster rollout show 0wcy7y2fb2 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRollouts,
	}, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err != nil {
			return err
		}
		t, err := s.task(ctx, id, 0, 0)
		if err != nil {
			return err
		}
		if t.Chain != "" {
			return s.showChain(ctx, t.Chain)
		}
		if t.Rollout == nil {
			return exit(exitNotAll, fmt.Errorf("task %s has no rule and no waves; `muster task %s` shows it",
				cell(string(id)), cell(string(id))))
		}
		if s.json {
			return s.writeJSON(t)
		}
		text := headline(t, s.colours) + "\n"
		for _, line := range append(ruleLines(t.Rollout.Rollout, t.Total), rolloutLines(t)...) {
			text += line + "\n"
		}
		list, err := s.lacks(ctx, id)
		return errors.Join(s.write(text+lackLines(list.Waits, s.tableWidth())), err)
	})
}

func newRolloutStop() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "stop TASK",
		Short: "Let no further job of a task begin",
		Long: `stop lets what has begun go on to its end, also over several steps, and nothing else
begin. muster rollout next lets it go on; muster cancel ends it.`,
		Example:           `  muster rollout stop 0wcy7y2fb2 --reason 'fw17 drops traffic'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRollouts,
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err == nil && strings.TrimSpace(reason) == "" {
			err = exit(exitUsage, errors.New("--reason is missing: say why, such as --reason "+
				"'fw17 drops traffic'"))
		}
		if err != nil {
			return err
		}
		var did jobs.Rolled
		if err := s.order(ctx, rolloutPath(id, "stop"), reason, &did); err != nil {
			return refusedUse(err)
		}
		return s.showRolled(did)
	})
}

func newRolloutNext() *cobra.Command {
	reason, failed, wave := "", "", 0
	c := &cobra.Command{
		Use:   "next TASK",
		Short: "Let a stopped task go on, or open its next wave now",
		Long: `next lets a task go on that was stopped by its rule or by a person, or opens the next
wave without waiting for the soak time, the gate or the health check. If more have
failed than may, --max-failed says how many may fail in all from now on.

While jobs of the open waves have not ended no further wave is opened: next says so and
ends with exit code 1, and is to be given again when muster rollout show says that the
wave is over. A task that goes on already, with no wave ahead, is exit code 0.

With --wave N only wave N is opened, so that giving the order twice does not open two: it
must be the next one, and if it is open already nothing is done. No wave is passed over.`,
		Example: `  muster rollout next 0wcy7y2fb2 --reason 'wave 1 looks well'
  muster rollout next 0wcy7y2fb2 --wave 2 --reason 'wave 1 looks well'
  muster rollout next 0wcy7y2fb2 --max-failed 10 --reason 'the six are old ones'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRollouts,
	}
	addReason(c, &reason)
	c.Flags().IntVar(&wave, "wave", 0, "open wave `N`, which must be the next one, and no other")
	c.Flags().StringVar(&failed, "max-failed", "", "so many may fail in all from now on: `N or P%`")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		id, err := taskArg(args[0])
		if err == nil {
			err = needReason(reason, "wave 1 looks well")
			if err != nil {
				err = exit(exitUsage, err)
			}
		}
		if c.Flags().Changed("wave") && wave < 1 {
			err = errors.Join(err, exit(exitUsage, fmt.Errorf("--wave %d: want 1 or more", wave)))
		}
		if err != nil {
			return err
		}
		t, err := s.task(ctx, id, 0, 0)
		if err != nil {
			return err
		}
		if t.Chain != "" && failed == "" && wave == 0 {
			return s.orderChain(ctx, t.Chain, "next", reason)
		}
		var did jobs.Rolled
		err = s.do(ctx, call{method: http.MethodPost, path: rolloutPath(id, "next"), bound: submitTimeout,
			body: api.NextRequest{MaxFailed: failed, Wave: wave,
				OrderRequest: api.OrderRequest{Reason: reason, As: s.as}}}, &did)
		if err != nil {
			return refusedUse(err)
		}
		return s.showNext(did)
	})
}

// showNext is showRolled, and a failure if the next wave was to be opened and was not: a
// script must not take that for opened.
func (s *session) showNext(d jobs.Rolled) error {
	if d.Early == "" {
		return s.showRolled(d)
	}
	if s.json {
		if err := s.writeJSON(d); err != nil {
			return err
		}
	}
	return exit(exitNotAll, fmt.Errorf("task %[1]s: no wave was opened: %[2]s; `muster rollout show "+
		"%[1]s` tells when it is over", cell(string(d.Task)), cell(d.Early)))
}

func rolloutPath(id jobs.TaskID, verb string) string {
	return "/v1/tasks/" + url.PathEscape(string(id)) + "/rollout/" + verb
}

func (s *session) showRolled(d jobs.Rolled) error {
	if s.json {
		return s.writeJSON(d)
	}
	return s.write(rolledText(d))
}

// rolledText tells what an order about a rollout did.
func rolledText(d jobs.Rolled) string {
	task := "task " + cell(string(d.Task))
	switch {
	case d.Stopped && d.Already:
		return task + " stood so already: " + cell(d.Note) + "\n"
	case d.Stopped:
		return task + " is stopped: what has begun goes on, nothing else begins\n"
	case d.Already && d.Wave > 0:
		return task + fmt.Sprintf(": wave %d is open already: nothing to do\n", d.Wave)
	case d.Already:
		return task + " waits for nobody: nothing to do\n"
	}
	text := task + " goes on"
	if d.Was != "" {
		text += "; it was stopped: " + cell(d.Was)
	}
	if d.Moved > 0 {
		text += fmt.Sprintf("; %s brought back", count(d.Moved, "job"))
	}
	return text + "\n"
}

func completeRollouts(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	list, _ := askServer(c, func(ctx context.Context, cl *client) ([]jobs.TaskInfo, error) {
		return cl.rollouts(ctx)
	})
	var words []cobra.Completion
	for _, t := range list {
		words = append(words, cobra.CompletionWithDesc(cell(string(t.Task)),
			fmt.Sprintf("%s on %s, %s", cell(t.Runbook), count(t.Total, "host"), cell(string(t.State)))))
	}
	return words, noFiles
}

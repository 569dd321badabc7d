package orders

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/jobs"
)

// NewRollout makes the command rollout.
func NewRollout() *cobra.Command {
	c := &cobra.Command{
		Use:   "rollout",
		Short: "Show, stop and continue tasks that go out in waves or stop by a rule",
		Long: `A task with --max-failed, --breaker, --canary or --waves stops when its rule breaks:
jobs that have begun continue to their end, and no other job begins until a person lets
the task continue.`,
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
	return cli.Command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List tasks with a rule or waves that have not ended",
		Example: `  muster rollout ls
  muster rollout ls -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		list, err := listRollouts(ctx, s.Client)
		if err != nil {
			return err
		}
		watch.Banner(ctx, s)
		return s.List(list, rolloutGrid(list, s.Colours),
			"no task with a rule or waves is on its way")
	})
}

func listRollouts(ctx context.Context, c *cli.Client) ([]jobs.TaskInfo, error) {
	var l api.TaskList
	err := c.Get(ctx, "/v1/rollouts", nil, &l)
	return cli.Filled(l.Tasks), err
}

func rolloutGrid(list []jobs.TaskInfo, colours cli.Palette) cli.Grid {
	g := cli.NewGrid("TASK", "RUNBOOK", "OPERATOR", "STATE", "WAVE", ">DONE", ">TOTAL", ">FAILED",
		">BEGUN", "RULE", "WHY")
	for _, t := range list {
		if t.Rollout == nil {
			continue // the server sent nonsense
		}
		r := *t.Rollout
		state, failed := cli.Cell(string(t.State)), fmt.Sprint(r.Failed)
		if t.State == jobs.TaskStopped {
			state = colours.Paint(cli.Yellow, state)
		}
		if r.Failed > 0 {
			failed = colours.Paint(cli.Red, failed)
		}
		wave := "-"
		if len(r.Waves) > 0 {
			wave = fmt.Sprintf("%d of %d", r.Wave, len(r.Waves))
		}
		g.Add(cli.Cell(string(t.Task)), cli.Cell(t.Runbook), cli.Cell(t.Operator), state, wave,
			fmt.Sprint(t.Outcomes.Sum()), fmt.Sprint(t.Total), failed, fmt.Sprint(r.Begun),
			cli.OrDash(cli.Fit(watch.ShortRule(r.Rule), 60)), cli.OrDash(cli.Fit(cli.Cell(r.Stopped),
				watch.LineColumns)))
	}
	return g
}

func newRolloutShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "show TASK",
		Short: "Show the rule and the waves of a task, its progress, and what it waits for",
		Example: `  muster rollout show 0wcy7y2fb2
  muster rollout show 0wcy7y2fb2 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRollouts,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		t, err := s.Task(ctx, id, 0, 0)
		if err != nil {
			return err
		}
		if t.Chain != "" {
			return watch.ShowChain(ctx, s, t.Chain)
		}
		if t.Rollout == nil {
			return cli.Exit(cli.ExitNotAll, fmt.Errorf(
				"task %s has no rule and no waves; `muster task %s` shows it",
				cli.Cell(string(id)), cli.Cell(string(id))))
		}
		if s.JSON {
			return s.WriteJSON(t)
		}
		text := watch.Headline(t, s.Colours) + "\n"
		for _, line := range append(watch.RuleLines(t.Rollout.Rollout, t.Total),
			watch.RolloutLines(t)...) {
			text += line + "\n"
		}
		list, err := watch.Lacks(ctx, s.Client, id)
		return errors.Join(s.Write(text+watch.LackLines(list.Waits, s.TableWidth())), err)
	})
}

func newRolloutStop() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "stop TASK",
		Short: "Let no further job of a task begin",
		Long: `stop lets no further job of a task begin. Jobs that have begun continue to their end,
also over several steps. muster rollout next lets the task continue; muster cancel ends
it.`,
		Example:           `  muster rollout stop 0wcy7y2fb2 --reason 'fw17 drops traffic'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRollouts,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err == nil && strings.TrimSpace(reason) == "" {
			err = cli.Exit(cli.ExitUsage, errors.New("--reason is missing: say why, such as --reason "+
				"'fw17 drops traffic'"))
		}
		if err != nil {
			return err
		}
		var did jobs.Rolled
		if err := s.Order(ctx, rolloutPath(id, "stop"), reason, &did); err != nil {
			return cli.RefusedUse(err)
		}
		return showRolled(s.Screen, did)
	})
}

func newRolloutNext() *cobra.Command {
	reason, failed, wave := "", "", 0
	c := &cobra.Command{
		Use:   "next TASK",
		Short: "Let a stopped task continue, or open its next wave now",
		Long: `next lets a task continue that its rule or a person has stopped, or opens the next wave
without waiting for the soak time, the gate or the health check. If too many hosts have
failed, --max-failed sets how many may fail in all from now on.

While jobs of the open waves have not ended, next opens no further wave: it says so and
ends with exit code 1. Give it again when muster rollout show says that the wave is over.
If the task continues already and no wave is ahead, the exit code is 0.

With --wave N next opens only wave N, so that the order given twice does not open two
waves. N must be the next wave; if it is open already, next does nothing. No wave can be
skipped.`,
		Example: `  muster rollout next 0wcy7y2fb2 --reason 'wave 1 looks well'
  muster rollout next 0wcy7y2fb2 --wave 2 --reason 'wave 1 looks well'
  muster rollout next 0wcy7y2fb2 --max-failed 10 --reason 'the six are old ones'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRollouts,
	}
	cli.AddReason(c, &reason)
	c.Flags().IntVar(&wave, "wave", 0, "open wave `N`, which must be the next one, and no other")
	c.Flags().StringVar(&failed, "max-failed", "", "so many may fail in all from now on: `N or P%`")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err == nil {
			err = cli.NeedReason(reason, "wave 1 looks well")
			if err != nil {
				err = cli.Exit(cli.ExitUsage, err)
			}
		}
		if c.Flags().Changed("wave") && wave < 1 {
			err = errors.Join(err, cli.Exit(cli.ExitUsage, fmt.Errorf("--wave %d: want 1 or more", wave)))
		}
		if err != nil {
			return err
		}
		t, err := s.Task(ctx, id, 0, 0)
		if err != nil {
			return err
		}
		if t.Chain != "" && failed == "" && wave == 0 {
			return orderChain(ctx, s, t.Chain, "next", reason)
		}
		var did jobs.Rolled
		err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: rolloutPath(id, "next"),
			Bound: cli.SubmitTimeout,
			Body: api.NextRequest{MaxFailed: failed, Wave: wave,
				OrderRequest: api.OrderRequest{Reason: reason, As: s.As}}}, &did)
		if err != nil {
			return cli.RefusedUse(err)
		}
		return showNext(s.Screen, did)
	})
}

// showNext is showRolled, with a failure if the next wave was not opened as ordered: a script must
// not take it for opened.
func showNext(s *cli.Screen, d jobs.Rolled) error {
	if d.Early == "" {
		return showRolled(s, d)
	}
	if s.JSON {
		if err := s.WriteJSON(d); err != nil {
			return err
		}
	}
	return cli.Exit(cli.ExitNotAll, fmt.Errorf("task %[1]s: no wave was opened: "+
		"%[2]s; `muster rollout show "+
		"%[1]s` shows when it is over", cli.Cell(string(d.Task)), cli.Cell(d.Early)))
}

func rolloutPath(id jobs.TaskID, verb string) string {
	return "/v1/tasks/" + url.PathEscape(string(id)) + "/rollout/" + verb
}

func showRolled(s *cli.Screen, d jobs.Rolled) error {
	if s.JSON {
		return s.WriteJSON(d)
	}
	return s.Write(rolledText(d))
}

// rolledText describes the result of an order about a rollout.
func rolledText(d jobs.Rolled) string {
	task := "task " + cli.Cell(string(d.Task))
	switch {
	case d.Ended:
		return task + " has ended: nothing to do\n"
	case d.Stopped && d.Already:
		return task + unchanged(d.Note) + "\n"
	case d.Stopped:
		return task + " is stopped: jobs that have begun continue, no other begins\n"
	case d.Already && d.Wave > 0:
		return task + fmt.Sprintf(": wave %d is open already: nothing to do\n", d.Wave)
	case d.Already && d.MaxFailed != nil:
		return task + " needs no order to continue, and its rule is so already: " + budgetText(d) +
			": nothing to do\n"
	case d.Already:
		return task + " needs no order to continue: nothing to do\n"
	}
	text := task + " continues"
	if d.Was != "" {
		text += "; it was stopped: " + cli.Cell(d.Was)
	}
	if d.Moved > 0 {
		text += fmt.Sprintf("; %s brought back", cli.Count(d.Moved, "job"))
	}
	if d.MaxFailed != nil {
		text += "; " + budgetText(d)
	}
	return text + "\n"
}

// budgetText describes the budget of failures that an order set.
func budgetText(d jobs.Rolled) string {
	return fmt.Sprintf("it stops when more than %d have failed", *d.MaxFailed)
}

func completeRollouts(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) ([]jobs.TaskInfo, error) {
		return listRollouts(ctx, cl)
	})
	var words []cobra.Completion
	for _, t := range list {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(string(t.Task)),
			fmt.Sprintf("%s on %s, %s", cli.Cell(t.Runbook), cli.Count(t.Total, "host"),
				cli.Cell(string(t.State)))))
	}
	return words, cli.NoFiles
}

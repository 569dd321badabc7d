package times

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/submit"
	"muster/cli/watch"
	"muster/fleet"
	"muster/jobs"
	"muster/windows"
)

// NewSchedules makes the command schedules.
func NewSchedules() *cobra.Command {
	c := &cobra.Command{
		Use:     "schedules",
		Aliases: []string{"schedule"},
		Short:   "Submit tasks repeatedly, at set times",
		Long: `A schedule submits a task repeatedly: it has cron text in a time zone, a runbook, and a
selector that is looked up at each tick. One of the servers fires all schedules; each
tick becomes one task, also if that server dies or comes back.`,
		Example: `  muster schedules apply schedules.yaml --check
  muster schedules ls
  muster schedules next zsk-weekly --count 5
  muster schedules pause zsk-weekly --reason 'the key is being rolled by hand'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newApplySchedules(), newListSchedules(), newShowSchedule(), newNextTicks(),
		newRunSchedule(), newPauseSchedule(), newResumeSchedule(), newRemoveSchedule())
	return c
}

func newApplySchedules() *cobra.Command {
	check := false
	c := &cobra.Command{
		Use:   "apply FILE …",
		Short: "Add and change schedules as files say",
		Long:  applySchedulesHelp + pruningHelp,
		Example: `  muster schedules apply schedules.yaml
  muster schedules apply schedules.yaml --check
  muster schedules apply acme.yaml --prune
  muster schedules apply - < schedules.yaml`,
		Args: cobra.MinimumNArgs(1),
	}
	c.Flags().BoolVar(&check, "check", false, "show what would be done and do nothing")
	var pruning windows.Pruning
	addPruning(c, &pruning)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		b := api.ApplySchedules{Pruning: pruning, OrderRequest: api.OrderRequest{As: s.As}}
		var errs []error
		for _, path := range args {
			text, err := cli.ReadArgFile(ctx, path)
			errs = append(errs, err)
			b.Files = append(b.Files, windows.File{Name: path, Content: string(text)})
		}
		if err := errors.Join(errs...); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var did api.AppliedSchedules
		for _, b.Check = range slices.Compact([]bool{true, check}) {
			b.Basis, did = did.Basis, api.AppliedSchedules{}
			err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/schedules",
				Bound: cli.SubmitTimeout,
				Body:  b}, &did)
			if err != nil {
				return cli.RefusedUse(err)
			}
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(appliedText(did))
	})
}

func newListSchedules() *cobra.Command {
	c := &cobra.Command{
		Use:               "ls",
		Short:             "List schedules",
		Example:           "  muster schedules ls\n  muster schedules ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		list, err := listSchedules(ctx, s.Client)
		if err != nil {
			return err
		}
		watch.Banner(ctx, s)
		return s.List(list, scheduleGrid(list, s.Colours),
			"there are no schedules: `muster schedules apply FILE` makes some")
	})
}

func listSchedules(ctx context.Context, c *cli.Client) ([]api.ScheduleInfo, error) {
	var l api.ScheduleList
	err := c.Get(ctx, "/v1/schedules", nil, &l)
	return cli.Filled(l.Schedules), err
}

func newShowSchedule() *cobra.Command {
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a schedule, and what became of its last tick",
		Example: "  muster schedules show zsk-weekly\n" +
			"  muster schedules show zsk-weekly -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSchedules,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		var i api.ScheduleInfo
		path, err := schedulePath(args[0], "")
		if err == nil {
			err = s.Get(ctx, path, nil, &i)
		}
		if err != nil {
			return err
		}
		return showSchedule(s.Screen, i)
	})
}

func newNextTicks() *cobra.Command {
	many, from := 10, ""
	c := &cobra.Command{
		Use:   "next NAME",
		Short: "List the ticks ahead, in UTC, in the zone of the schedule and in yours",
		Example: `  muster schedules next zsk-weekly
  muster schedules next zsk-weekly --count 3 --from '2026-10-24 00:00'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSchedules,
	}
	c.Flags().IntVar(&many, "count", many, "how many")
	c.Flags().StringVar(&from, "from", "", "the first `time` to list: 2026-12-01T02:00:00Z or "+
		"'2026-12-01 02:00' (local); now if not given")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		const most = 1000
		if many < 1 || many > most {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--count %d: want 1 to %d", many, most))
		}
		q := url.Values{"count": {strconv.Itoa(many)}}
		if from != "" {
			t, err := cli.ParseAt(from, s.Now())
			if err != nil {
				return cli.Exit(cli.ExitUsage, errors.New(strings.Replace(err.Error(), "--at", "--from", 1)))
			}
			q.Set("from", t.UTC().Format(time.RFC3339))
		}
		var l api.TickList
		path, err := schedulePath(args[0], "/next")
		if err == nil {
			err = s.Get(ctx, path, q, &l)
		}
		if err != nil {
			return err
		}
		if l.Stands != "" && !s.JSON {
			s.Say("schedule %s has no ticks at the moment: %s", cli.Cell(l.Schedule), cli.Cell(l.Stands))
		}
		if s.JSON {
			return s.WriteJSON(l)
		}
		return s.List(l.Ticks, tickGrid(l, s.Now().Location()), "there are no ticks ahead")
	})
}

func newRunSchedule() *cobra.Command {
	c := &cobra.Command{
		Use:   "run NAME",
		Short: "Submit the task of a schedule now, beside its ticks",
		Long: `run submits the task of a schedule in your name and prints it, also in a pause or while
an earlier task of the schedule runs. No tick is left out because of it.`,
		Example:           "  muster schedules run zsk-weekly",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSchedules,
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		path, err := schedulePath(args[0], "/run")
		if err != nil {
			return err
		}
		id := jobs.NewTaskID(s.Now(), cli.Chance())
		t, err := cli.HandIn[api.Submitted](ctx, s.Client, id, cli.Call{Method: http.MethodPost,
			Path:  path,
			Bound: cli.SubmitTimeout, Body: api.RunSchedule{ID: string(id), As: s.As}},
			func(error, time.Duration) { s.Say("no answer, trying again") })
		if err != nil {
			return submit.SubmitEnding(ctx, api.Submit{ID: string(id)}, err)
		}
		if s.JSON {
			return s.WriteJSON(t)
		}
		s.Say("%s", submit.Accepted(t))
		s.Say("follow it with `muster task %s --wait`", t.Task)
		return s.Write(cli.Cell(string(t.Task)) + "\n")
	})
}

func newPauseSchedule() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:               "pause NAME",
		Short:             "Pause a schedule; ticks in the pause are not made up for",
		Example:           "  muster schedules pause zsk-weekly --reason 'rolled by hand'",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSchedules,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		return turnSchedule(ctx, s, args[0], "pause", reason)
	})
}

func newResumeSchedule() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:               "resume NAME",
		Short:             "End the pause of a schedule",
		Example:           "  muster schedules resume zsk-weekly",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSchedules,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		return turnSchedule(ctx, s, args[0], "resume", reason)
	})
}

func newRemoveSchedule() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:               "rm NAME",
		Short:             "Remove a schedule; its tasks continue",
		Example:           "  muster schedules rm zsk-weekly",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeSchedules,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		path, err := schedulePath(args[0], "/remove")
		if err != nil {
			return err
		}
		var i api.ScheduleInfo
		if err := s.Order(ctx, path, reason, &i); err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(i)
		}
		return s.Write("schedule " + cli.Cell(i.Name) + " is removed\n")
	})
}

// turnSchedule pauses or resumes a schedule, and prints its state afterwards.
func turnSchedule(ctx context.Context, s *cli.Session, name, verb, reason string) error {
	path, err := schedulePath(name, "/"+verb)
	if err != nil {
		return err
	}
	var did api.TurnedSchedule
	if err := s.Order(ctx, path, reason, &did); err != nil {
		return err
	}
	if s.JSON {
		return s.WriteJSON(did)
	}
	return s.Write(turnedText(did) + "\n")
}

// turnedText describes a schedule that was paused or resumed.
func turnedText(d api.TurnedSchedule) string {
	text, stands := "schedule "+cli.Cell(d.Name), standing(d.Paused, d.Enabled)
	switch {
	case d.Already && d.Paused != "":
		return text + " stays as it was, " + stands + cli.ChangesNothing
	case d.Already:
		text += " was not paused, so this order and its reason change nothing: it"
	}
	if stands != "" {
		return text + " is " + stands
	}
	return text + " is at work; next " + cli.Moment(d.Next)
}

// schedulePath returns the route of a schedule.
func schedulePath(name, more string) (string, error) {
	if err := fleet.CheckName(name); err != nil {
		return "", cli.Exit(cli.ExitUsage, fmt.Errorf("%w; `muster schedules ls` lists them", err))
	}
	return "/v1/schedules/" + url.PathEscape(name) + more, nil
}

func completeSchedules(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	list, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) ([]api.ScheduleInfo, error) {
		return listSchedules(ctx, cl)
	})
	var words []cobra.Completion
	for _, i := range list {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(i.Name),
			cli.Cell(i.Cron)+", "+cli.Cell(i.Runbook)+" on "+cli.Cell(i.On)))
	}
	return words, cli.NoFiles
}

package submit

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
	"muster/jobs"
	"muster/jobs/quarantine"
	"muster/scripts"
)

// Name takes the selector behind the runbook.
func (f *RunFlags) Name(args []string) error {
	switch {
	case len(args) < 2:
		return nil
	case f.On != "":
		return fmt.Errorf("the hosts are named twice, %s and --on %s: give one selector",
			cli.Quoted(args[1]), cli.Quoted(f.On))
	}
	f.On = args[1]
	return nil
}

// AddWhat adds the flags that say what runs, and where.
func (f *RunFlags) AddWhat(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.On, "on", "", "`selector` of the hosts")
	fl.StringArrayVar(&f.Args, "arg", nil, "`name=value`, of a secret name=@file; can be repeated")
	fl.StringArrayVar(&f.files, "arg-file", nil,
		"argument of type file, `name=path`; - is the standard input; can be repeated")
	cli.CompleteFlagWith(c, "on", complete.Selector)
	cli.CompleteFlagWith(c, "arg", complete.Arguments)
}

// AddTerms adds the flags that decide when a task can be done, for run and plan.
func (f *RunFlags) AddTerms(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.at, "at", "", "do not start before this `time`: 2026-12-01T02:00:00Z, "+
		"'2026-12-01 02:00' (local), or +90m")
	fl.StringVar(&f.expire, "expire", "",
		"`time` that a due job waits for its start before it expires (default 8h)")
	fl.BoolVar(&f.manner.Disruptive, "disruptive", false,
		"one host of a redundancy group at a time, whatever the runbook says")
	fl.BoolVar(&f.timed.SkipClosed, "skip-closed", false,
		"leave out hosts for which no approved window is known, instead of refusing")
	fl.BoolVar(&f.manner.AllowedOnly, "allowed-only", false,
		"leave out hosts on which you may not run this, instead of refusing the task")
	fl.StringVar(&f.priority, "priority", "", "high, normal or low: the task's `share` of a queue "+
		"that is overloaded (default normal)")
	fl.StringVar(&f.become, "become-password", "",
		"the password of sudo, where hosts have become: sudo: `@file`, @-, ref:REFERENCE or ask")
	f.addTimed(c)
	f.only.add(c)
	cli.CompleteFlag(c, "priority", string(jobs.PriorityHigh), string(jobs.PriorityNormal),
		string(jobs.PriorityLow))
}

// Add adds the flags that say how a task runs.
func (f *RunFlags) Add(c *cobra.Command) {
	f.AddTerms(c)
	fl := c.Flags()
	fl.StringVar(&f.id, "id", "", "`id` of the task, to complete a submit that got no answer")
	fl.BoolVar(&f.watch.wait, "wait", false, "wait for the end, also with -o json")
	fl.BoolVar(&f.watch.detach, "detach", false, "print the task and do not follow it")
	fl.BoolVar(&f.dry, "dry-run", false, "show what would be done and do nothing")
	f.rollout.add(c)
	f.rollout.addChain(c)
	f.watch.held.add(c)
	f.turn.add(c)
	c.MarkFlagsMutuallyExclusive("wait", "detach", "dry-run")
}

// AddLane adds the flags of the lane.
func (f *RunFlags) AddLane(c *cobra.Command) { f.turn.addLane(c) }

// Lane returns the query that names the lane.
func (f RunFlags) Lane() url.Values { return f.turn.query() }

// RunFlags are the flags of run.
type RunFlags struct {
	On, at, expire, id string
	turn               turnFlags
	priority           string
	Args, files        []string
	watch              watchFlags
	dry                bool
	manner             api.Manner
	become             string
	only               onlyFlags
	rollout            rolloutFlags
	timed              api.Timed
}

// watchFlags say how long to wait for the end, and whether the task waits for signatures before.
type watchFlags struct {
	wait, detach bool
	held         heldFlags
}

// onlyFlags ask for dry runs on the hosts.
type onlyFlags struct{ check, diff bool }

func (f *onlyFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.check, "check", false,
		"run only the checks before the runbook's first change")
	c.Flags().BoolVar(&f.diff, "diff", false, "like --check, and show what the runbook would change")
	c.MarkFlagsMutuallyExclusive("check", "diff")
}

// what returns the requested dry run; empty: none.
func (f onlyFlags) what() string {
	switch {
	case f.check:
		return scripts.OnlyCheck
	case f.diff:
		return scripts.OnlyDiff
	}
	return ""
}

// SubmitEnding adds the exit code to the error of a submit without an answer.
func SubmitEnding(ctx context.Context, b api.Submit, err error) error {
	var no *cli.Refusal
	switch {
	case ctx.Err() != nil && b.DryRun:
		return cli.Exit(cli.ExitInterrupted, nil)
	case ctx.Err() != nil:
		return cli.Exit(cli.ExitInterrupted, errors.New("interrupted: "+cli.Unsure(jobs.TaskID(b.ID))))
	case errors.As(err, &no) && no.Status < 500:
		return cli.Exit(cli.ExitUsage, err)
	}
	return cli.Exit(cli.CodeOf(err), err)
}

// Accepted describes the task that the server accepted.
func Accepted(t api.Submitted) string {
	words := fmt.Sprintf("task %s: %s on %s for %s", cli.Cell(string(t.Task)), cli.Cell(t.Runbook),
		cli.Count(t.Total, "host"), watch.OperatorWords(t.TaskInfo))
	if t.Durable != "" {
		words += " (Redis: " + cli.Cell(t.Durable) + ")"
	}
	return words
}

// SayPlan prints the warnings about the hosts of a task before it runs.
func SayPlan(s *cli.Screen, t api.Submitted) {
	s.SayLeftOut(t.LeftOut)
	if t.Unfenced != "" {
		s.Say("unfenced, keep no record of attempts: %s", cli.Cell(t.Unfenced))
	}
	if t.Unmarked != nil {
		s.Say("no host carries a marker in %s: if Redis loses its data while one is disturbed, nothing "+
			"keeps the others from being disturbed, too", cli.Cell(groupWords(t.Unmarked)))
	}
	for _, line := range t.Frozen {
		if strings.Contains(line, quarantine.In) {
			s.Say("left out: %s", cli.Cell(line))
			continue
		}
		s.Say("begins later: %s", cli.Cell(line))
	}
	for _, line := range windowWords(t.Windows, s.Now().Location()) {
		s.Say("%s", line)
	}
	watch.SayRule(s, t)
	for _, line := range watch.ChainPlanLines(t.Follows) {
		s.Say("%s", line)
	}
}

// groupWords names some of the groups.
func groupWords(names []string) string {
	const most = 10
	text := strings.Join(names[:min(len(names), most)], ", ")
	if n := len(names) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	if len(names) == 1 {
		return "group " + text
	}
	return "groups " + text
}

// ShowPlan prints what a submit would do, and what would keep it from starting.
func ShowPlan(ctx context.Context, s *cli.Session, t api.Submitted) error {
	watch.WouldWait(ctx, s, t.Zones)
	if s.JSON {
		return s.WriteJSON(t)
	}
	SayPlan(s.Screen, t)
	return s.Write(fmt.Sprintf("would run %s on %s for %s: %s\n", cli.Cell(t.Runbook),
		cli.Count(t.Total, "host"), watch.OperatorWords(t.TaskInfo), cli.Cell(t.Hosts)))
}

// Submit makes the body of a submit, or reports all mistakes in the flags.
func (f RunFlags) Submit(runbook string, now time.Time,
	read func(path string) ([]byte, error)) (api.Submit, error) {
	b := api.Submit{ID: f.id, Runbook: runbook, Expire: f.expire, DryRun: f.dry,
		Manner: f.manner, Supersedes: f.turn.supersedes, Priority: f.priority,
		Args: map[string]string{}, Files: map[string][]byte{},
		Timed: f.timed}
	b.Only = f.only.what()
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	if f.On == "" {
		note(errors.New("no hosts are named: write a selector behind the runbook, such as 'role=fw', " +
			"'fw[001-020]' or all"))
	}
	rollout, err := f.rollout.ask()
	note(err)
	b.Rollout = rollout
	on, err := cli.WithFiles(f.On, read)
	b.On = on
	note(cli.FlagMistakes("--on", err))
	if f.id != "" {
		if _, err := jobs.ParseTaskID(f.id); err != nil {
			note(fmt.Errorf("--id: %w", err))
		}
	}
	if f.expire != "" {
		if d, err := time.ParseDuration(f.expire); err != nil || d <= 0 {
			note(fmt.Errorf("--expire %q: want a time such as 90m or 8h", f.expire))
		}
	}
	if _, err := jobs.ParsePriority(f.priority); err != nil {
		note(fmt.Errorf("--priority: %w", err))
	}
	at, err := cli.ParseAt(f.at, now)
	note(err)
	b.At = jobs.Time{Time: at}
	given := map[string]bool{}
	for _, text := range f.Args {
		name, value, err := cli.SplitArg("--arg", text, given)
		note(err)
		b.Args[name] = value
	}
	for _, text := range f.files {
		name, path, err := cli.SplitArg("--arg-file", text, given)
		if err == nil {
			b.Files[name], err = read(path)
		}
		if err != nil {
			note(fmt.Errorf("--arg-file %s: %w", name, err))
		}
	}
	return b, errors.Join(errs...)
}

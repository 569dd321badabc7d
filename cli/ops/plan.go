package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/submit"
	"muster/jobs"
	"muster/scripts"
)

// NewPlan makes the command plan.
func NewPlan() *cobra.Command {
	var f submit.RunFlags
	calibrate, days := false, 30
	c := &cobra.Command{
		Use:   "plan RUNBOOK SELECTOR | plan --calibrate",
		Short: "Predict when a task would be done, and which hosts fit into no window",
		Long: `plan takes the runbook, the hosts and the arguments of muster run, and the flags that
decide when a task is done, waves too, but no chain. It reads no secrets: their names
are enough. It submits nothing. It lets the waiting jobs and those of the new task run
in pretended time: with the agreed windows, approvals and freezes, the fair order of an
overloaded queue, groups, limits, lanes, and the slots of the present nodes. It expects
a job to take as long as the last ten successes of the same runbook with the same
arguments on hosts of the same model and customer; without such successes, as --expect
or the runbook says.

The plan holds if no other task comes, no node leaves and nothing fails.

--calibrate compares plans with what happened: a task of the same runbook, selector and
operator that was submitted within an hour of its plan.

Exit codes: 0 all hosts would be done, 4 some would not, 2 wrong use, 3 the server does
not answer.`,
		Example: `  muster plan firmware --on 'customer=acme' --arg-file bundle=a.raucb --arg version=2.0
  muster plan exec all --arg cmd='uname -a' --at '2026-12-01 02:00'
  muster plan exec --on 'customer=acme' --arg cmd=reboot --window --expect 5m
  muster plan exec --on fw007 --arg cmd=reboot --override-freeze 'INC-7: the cause'
  muster plan firmware all --arg-file bundle=a.raucb --arg version=2.0 --skip-closed
  muster plan firewall all --arg-file ruleset=new.nft --waves 1,10%,100% --soak 10m
  muster plan firewall --on 'customer=acme' --arg-file ruleset=42.nft --lane rules/acme
  muster plan --calibrate --days 90`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: complete.RunbookAndHosts,
	}
	fl := c.Flags()
	f.AddWhat(c)
	f.AddTerms(c)
	f.AddWaves(c)
	f.AddLane(c)
	fl.BoolVar(&calibrate, "calibrate", false, "compare plans with what happened")
	fl.IntVar(&days, "days", days, "with --calibrate: plans of so many days")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		switch {
		case calibrate && len(args) > 0:
			return cli.Exit(cli.ExitUsage, errors.New(
				"--calibrate compares all plans: leave the runbook out"))
		case calibrate:
			return showCalibration(ctx, s, days)
		case len(args) == 0:
			return cli.Exit(cli.ExitUsage, errors.New("want a runbook, or --calibrate: muster plan --help"))
		}
		if err := f.Name(args); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return makePlan(ctx, s, f, args[0])
	})
}

func makePlan(ctx context.Context, s *cli.Session, f submit.RunFlags, runbook string) error {
	// A plan reads no secrets, but refuses one on the command line, as run does.
	unread := func(string) ([]byte, error) { return nil, nil }
	if _, err := f.TakeSecrets(ctx, s.Client, runbook, nil, unread); err != nil {
		return err
	}
	nobody := func(context.Context, string) (string, error) { return "", nil }
	become, err := f.WithBecome(ctx, nil, nobody, unread)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	b, err := f.Submit(runbook, s.Now(), s.Files.Reader(ctx))
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	b.As = s.As
	if become != nil {
		// Work with a password counts as other work than without one, so its name is sent.
		b.Secrets = map[string]string{scripts.BecomePassword: "unread"}
	}
	var p api.Foresight
	err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/plan",
		Query: f.Lane(), Body: b, Bound: cli.SubmitTimeout}, &p)
	if err != nil {
		return submit.SubmitEnding(ctx, api.Submit{DryRun: true}, err)
	}
	if s.JSON {
		err = s.WriteJSON(p)
	} else {
		err = s.Write(planText(p, s.TableWidth(), s.Colours))
	}
	if err == nil && p.Never > 0 {
		return cli.ExitWith(cli.ExitStopped)
	}
	return err
}

func planText(p api.Foresight, width int, colours cli.Palette) string {
	var b strings.Builder
	after := func(t jobs.Time) string {
		if t.IsZero() {
			return colours.Paint(cli.Red, "never")
		}
		return fmt.Sprintf("%s (in %s)", cli.Moment(t), cli.Span(max(0, t.Sub(p.At.Time))))
	}
	b.WriteString(cli.Details(
		[2]string{"runbook", cli.Cell(p.Runbook)},
		[2]string{"on", fmt.Sprintf("%s (%s)", cli.Cell(p.On), cli.Count(p.Hosts, "host"))},
		[2]string{"begins", after(p.Begins)},
		[2]string{"half done", after(p.Half)},
		[2]string{"done", after(p.Done)},
	))
	if len(p.Openings) > 0 {
		g := cli.NewGrid(">HOSTS", "OPENS", "CLOSES", "WINDOWS")
		for _, o := range p.Openings {
			g.Add(strconv.Itoa(o.Hosts), cli.Moment(o.Start), cli.Moment(o.End),
				cli.Cell(strings.Join(o.Windows, ",")))
		}
		b.WriteString("\n" + g.Render(width, true))
	}
	for _, l := range p.Left {
		words := colours.Paint(cli.Red, cli.Count(l.Count, "host")+" would not be done")
		fmt.Fprintf(&b, "\n%s: %s\n  %s\n", words, cli.Cell(l.Why), cli.Fit(cli.Cell(l.Hosts), width))
	}
	for _, n := range p.Slots {
		if n.Want > n.Slots {
			fmt.Fprintf(&b, "\nzone %s has %s: %d would do all hosts in their first opening\n",
				cli.Cell(n.Zone), cli.Count(n.Slots, "slot"), n.Want)
		}
	}
	if len(p.Others) > 0 {
		g := cli.NewGrid("TASK", "RUNBOOK", "OPERATOR", ">WAITING", ">NOT DONE", "DONE")
		for _, o := range p.Others {
			g.Add(cli.Cell(string(o.Task)), cli.Cell(o.Runbook), cli.Cell(o.Operator),
				strconv.Itoa(o.Waiting),
				strconv.Itoa(o.Left), after(o.Done))
		}
		b.WriteString("\nthe queue, with this task behind it:\n" + g.Render(width, true))
	}
	b.WriteString(takesText(p.Takes, width))
	for _, n := range p.Notes {
		b.WriteString("\nnote: " + cli.Cell(n) + "\n")
	}
	return b.String()
}

// takesShown bounds the kinds of hosts that are listed with their assumed times.
const takesShown = 10

// takesText explains where the figures of a plan come from.
func takesText(list []api.TakenTime, width int) string {
	if len(list) == 0 {
		return ""
	}
	g := cli.NewGrid(">HOSTS", "MODEL", "CUSTOMER", ">USUALLY", ">AT MOST", "AS")
	for _, t := range list[:min(len(list), takesShown)] {
		as := "--expect or the runbook says"
		switch {
		case t.Successes > 0:
			as = fmt.Sprintf("successes took, the last %d", t.Successes)
		case t.Unsaid:
			as = "the bound of an attempt: nobody knows"
		}
		g.Add(strconv.Itoa(t.Hosts), cli.OrDash(cli.Cell(t.Model)), cli.OrDash(cli.Cell(t.Customer)),
			cli.Span(cli.Seconds(t.Usual)), cli.Span(cli.Seconds(t.Most)), as)
	}
	text := "\nthe expected duration of a job, by which workers admit it to a window:\n" +
		g.Render(width, true)
	if n := len(list) - takesShown; n > 0 {
		text += fmt.Sprintf("and %d more kinds of hosts\n", n)
	}
	return text
}

func showCalibration(ctx context.Context, s *cli.Session, days int) error {
	if days < 1 || days > 4000 {
		return cli.Exit(cli.ExitUsage, fmt.Errorf("--days %d: want 1 to 4000", days))
	}
	var c api.Calibration
	err := s.Get(ctx, "/v1/plan/calibration", url.Values{"days": {strconv.Itoa(days)}}, &c)
	if err != nil {
		return err
	}
	if s.JSON {
		c.Compared = cli.Filled(c.Compared)
		return s.WriteJSON(c)
	}
	g := cli.NewGrid("PLANNED", "TASK", "RUNBOOK", ">HOSTS", ">NOT DONE", ">EXPECTED", ">TOOK",
		">TIMES")
	ended := 0
	for _, one := range c.Compared {
		took, off := cli.Cell(one.State), "-"
		if one.Actual > 0 {
			ended++
			took = cli.Span(one.Actual)
		}
		if one.Off > 0 {
			off = fmt.Sprintf("%.2f", one.Off)
			if one.Off > api.WrongBy || one.Off < 1.0/api.WrongBy {
				off = s.Colours.Paint(cli.Red, off+" wrong")
			}
		}
		expected := "never"
		if one.Expected > 0 {
			expected = cli.Span(one.Expected)
		}
		g.Add(cli.Moment(one.At), cli.Cell(string(one.Task)), cli.Cell(one.Runbook),
			strconv.Itoa(one.Plan.Hosts),
			strconv.Itoa(one.Undone), expected, took, off)
	}
	if err := s.List(c.Compared, g, "no plan became a task"); err != nil || len(c.Compared) == 0 {
		return err
	}
	return s.Write(fmt.Sprintf("\n%s, %d became tasks, %d of them have ended; it took %.2f times as "+
		"long (median); %d wrong by more than %d times\n", cli.Count(c.Plans, "plan"), len(c.Compared),
		ended, c.Median, c.Wrong, api.WrongBy))
}

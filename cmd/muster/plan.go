package main

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
	"muster/jobs"
	"muster/scripts"
)

func newPlan() *cobra.Command {
	var f runFlags
	calibrate, days := false, 30
	c := &cobra.Command{
		Use:   "plan RUNBOOK SELECTOR | plan --calibrate",
		Short: "Tell when a task would be done, and which hosts do not fit into a window",
		Long: `plan takes the runbook, the hosts and the arguments of muster run, and all its flags
on which it depends when the task is done, but no rule and no waves. It asks for no
secret and reads none: it needs no more than their names. It submits nothing. It lets
the jobs that wait, and those of the new task, run in pretended time: with the windows,
approvals and freezes as they are agreed, the fair order of an overloaded queue, groups,
limits, and the slots of the nodes that are there. How long a job takes is what the last
ten successes of the same runbook with the same arguments took on hosts of the same
model and customer, else what --expect or the runbook says.

It holds if nothing else happens: no task comes, no node goes, nothing fails.

--calibrate compares plans with what happened: a task of the same runbook, selector and
operator that was submitted within an hour of its plan.

Exit codes: 0 all hosts would be done, 4 some would not, 2 wrong use, 3 the server does
not answer.`,
		Example: `  muster plan firmware --on 'customer=acme' --arg-file bundle=a.raucb --arg version=2.0
  muster plan exec all --arg cmd='uname -a' --at '2026-12-01 02:00'
  muster plan exec --on 'customer=acme' --arg cmd=reboot --window --expect 5m
  muster plan exec --on fw007 --arg cmd=reboot --override-freeze 'INC-7: the cause'
  muster plan firmware all --arg-file bundle=a.raucb --arg version=2.0 --skip-closed
  muster plan --calibrate --days 90`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeRunbookAndHosts,
	}
	fl := c.Flags()
	f.addWhat(c)
	f.addTerms(c)
	fl.BoolVar(&calibrate, "calibrate", false, "compare plans with what happened")
	fl.IntVar(&days, "days", days, "with --calibrate: plans of so many days")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		switch {
		case calibrate && len(args) > 0:
			return exit(exitUsage, errors.New("--calibrate compares all plans: leave the runbook out"))
		case calibrate:
			return s.calibrate(ctx, days)
		case len(args) == 0:
			return exit(exitUsage, errors.New("want a runbook, or --calibrate: muster plan --help"))
		}
		if err := f.name(args); err != nil {
			return exit(exitUsage, err)
		}
		return s.plan(ctx, f, args[0])
	})
}

func (s *session) plan(ctx context.Context, f runFlags, runbook string) error {
	// Secrets are left where they are. One that stands on the command line is refused, as by run.
	unread := func(string) ([]byte, error) { return nil, nil }
	if _, err := s.takeSecrets(ctx, &f, runbook, nil, unread); err != nil {
		return err
	}
	nobody := func(context.Context, string) (string, error) { return "", nil }
	become, err := f.withBecome(ctx, nil, nobody, unread)
	if err != nil {
		return exit(exitUsage, err)
	}
	b, err := f.submit(runbook, s.now(), s.files.reader(ctx))
	if err != nil {
		return exit(exitUsage, err)
	}
	b.As = s.as
	if become != nil {
		// What runs with a password is other work than what runs without: its name counts.
		b.Secrets = map[string]string{scripts.BecomePassword: "unread"}
	}
	var p api.Foresight
	err = s.do(ctx, call{method: http.MethodPost, path: "/v1/plan", body: b, bound: submitTimeout}, &p)
	if err != nil {
		return submitEnding(ctx, api.Submit{DryRun: true}, err)
	}
	if s.json {
		err = s.writeJSON(p)
	} else {
		err = s.write(planText(p, s.tableWidth(), s.colours))
	}
	if err == nil && p.Never > 0 {
		return exitWith(exitStopped)
	}
	return err
}

func planText(p api.Foresight, width int, colours palette) string {
	var b strings.Builder
	after := func(t jobs.Time) string {
		if t.IsZero() {
			return colours.paint(red, "never")
		}
		return fmt.Sprintf("%s (in %s)", moment(t), span(max(0, t.Sub(p.At.Time))))
	}
	b.WriteString(details(
		[2]string{"runbook", cell(p.Runbook)},
		[2]string{"on", fmt.Sprintf("%s (%s)", cell(p.On), count(p.Hosts, "host"))},
		[2]string{"begins", after(p.Begins)},
		[2]string{"half done", after(p.Half)},
		[2]string{"done", after(p.Done)},
	))
	if len(p.Openings) > 0 {
		g := newGrid(">HOSTS", "OPENS", "CLOSES", "WINDOWS")
		for _, o := range p.Openings {
			g.add(strconv.Itoa(o.Hosts), moment(o.Start), moment(o.End),
				cell(strings.Join(o.Windows, ",")))
		}
		b.WriteString("\n" + g.render(width, true))
	}
	for _, l := range p.Left {
		words := colours.paint(red, count(l.Count, "host")+" would not be done")
		fmt.Fprintf(&b, "\n%s: %s\n  %s\n", words, cell(l.Why), fit(cell(l.Hosts), width))
	}
	for _, n := range p.Slots {
		if n.Want > n.Slots {
			fmt.Fprintf(&b, "\nzone %s has %s: %d would do all hosts in their first opening\n",
				cell(n.Zone), count(n.Slots, "slot"), n.Want)
		}
	}
	if len(p.Others) > 0 {
		g := newGrid("TASK", "RUNBOOK", "OPERATOR", ">WAITING", ">NOT DONE", "DONE")
		for _, o := range p.Others {
			g.add(cell(string(o.Task)), cell(o.Runbook), cell(o.Operator), strconv.Itoa(o.Waiting),
				strconv.Itoa(o.Left), after(o.Done))
		}
		b.WriteString("\nthe queue, with this task behind it:\n" + g.render(width, true))
	}
	b.WriteString(takesText(p.Takes, width))
	for _, n := range p.Notes {
		b.WriteString("\nnote: " + cell(n) + "\n")
	}
	return b.String()
}

// takesShown is how many kinds of hosts are named with the times that they are taken to need.
const takesShown = 10

// takesText says where the figures of a plan come from.
func takesText(list []api.TakenTime, width int) string {
	if len(list) == 0 {
		return ""
	}
	g := newGrid(">HOSTS", "MODEL", "CUSTOMER", ">USUALLY", ">AT MOST", "AS")
	for _, t := range list[:min(len(list), takesShown)] {
		as := "--expect or the runbook says"
		switch {
		case t.Successes > 0:
			as = fmt.Sprintf("successes took, the last %d", t.Successes)
		case t.Unsaid:
			as = "the bound of an attempt: nobody knows"
		}
		g.add(strconv.Itoa(t.Hosts), orDash(cell(t.Model)), orDash(cell(t.Customer)),
			span(seconds(t.Usual)), span(seconds(t.Most)), as)
	}
	text := "\nwhat it is taken to need, as workers do who admit it to a window:\n" +
		g.render(width, true)
	if n := len(list) - takesShown; n > 0 {
		text += fmt.Sprintf("and %d more kinds of hosts\n", n)
	}
	return text
}

func (s *session) calibrate(ctx context.Context, days int) error {
	if days < 1 || days > 4000 {
		return exit(exitUsage, fmt.Errorf("--days %d: want 1 to 4000", days))
	}
	var c api.Calibration
	err := s.get(ctx, "/v1/plan/calibration", url.Values{"days": {strconv.Itoa(days)}}, &c)
	if err != nil {
		return err
	}
	if s.json {
		c.Compared = filled(c.Compared)
		return s.writeJSON(c)
	}
	g := newGrid("PLANNED", "TASK", "RUNBOOK", ">HOSTS", ">NOT DONE", ">EXPECTED", ">TOOK",
		">TIMES")
	ended := 0
	for _, one := range c.Compared {
		took, off := cell(one.State), "-"
		if one.Actual > 0 {
			ended++
			took = span(one.Actual)
		}
		if one.Off > 0 {
			off = fmt.Sprintf("%.2f", one.Off)
			if one.Off > api.WrongBy || one.Off < 1.0/api.WrongBy {
				off = s.colours.paint(red, off+" wrong")
			}
		}
		expected := "never"
		if one.Expected > 0 {
			expected = span(one.Expected)
		}
		g.add(moment(one.At), cell(string(one.Task)), cell(one.Runbook), strconv.Itoa(one.Plan.Hosts),
			strconv.Itoa(one.Undone), expected, took, off)
	}
	if err := s.list(c.Compared, g, "no plan became a task"); err != nil || len(c.Compared) == 0 {
		return err
	}
	return s.write(fmt.Sprintf("\n%s, %d became tasks, %d of them have ended; it took %.2f times as "+
		"long (median); %d wrong by more than %d times\n", count(c.Plans, "plan"), len(c.Compared),
		ended, c.Median, c.Wrong, api.WrongBy))
}

package times

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/jobs"
	"muster/windows"
)

func newWindowsApprove() *cobra.Command {
	var f approveFlags
	c := &cobra.Command{
		Use:   "approve WINDOW",
		Short: "Approve a window, for a span of time or for single occurrences",
		Long: `approve records that a customer agrees to all occurrences of a window within a span of
time, or to those that begin at the given times. The approval is for the window as it is
now: any change of the window voids it for ever. approve first shows the occurrences on
the clocks of the window's place, and on a terminal it asks; --yes answers beforehand.`,
		Example: `  muster windows approve acme-sunday --from 2026-12-01 --until 2027-01-01 \
      --for 'Carol (ACME)' --reference CHG-17
  muster windows approve acme-sunday --start 2026-12-06T01:00:00Z`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWindows,
	}
	c.Flags().StringVar(&f.from, "from", "", "`time` from which occurrences are approved")
	c.Flags().StringVar(&f.until, "until", "", "`time` by which they must have ended")
	c.Flags().StringArrayVar(&f.starts, "start", nil,
		"`time` at which an occurrence begins; can be repeated")
	c.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")
	c.Flags().StringVar(&f.person, "for", "", "`person` of the customer who agreed, if it is not you")
	c.Flags().StringVar(&f.customer, "customer", "",
		"`customer` who agrees, if several have hosts at the place of the window")
	cli.CompleteFlagWith(c, "customer", complete.Customers)
	c.Flags().StringVar(&f.reference, "reference", "", "`ticket` or mail in which they did")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		body, err := f.request(s.As)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		shown, err := askPreview(ctx, s.Client, args[0], body)
		if err != nil {
			return err
		}
		approve := func(body api.ApproveRequest) (did api.Approved, err error) {
			return did, s.Do(ctx, cli.Call{Method: http.MethodPost, Body: body, Bound: cli.SubmitTimeout,
				Path: "/v1/windows/" + url.PathEscape(args[0]) + "/approve"}, &did)
		}
		check := body
		check.Check = true
		if _, err := approve(check); err != nil {
			return err // nobody is asked about what would be refused
		}
		fmt.Fprint(s.Err, shown.text())
		body.Hash = shown.window.Hash
		if !f.yes && !s.JSON && s.OutTerm && fromTerminal(c.InOrStdin()) {
			agreed, err := consents(c.InOrStdin(), s.Err, "Does the customer agree to this?")
			if err != nil {
				return err
			}
			if !agreed {
				return errors.New("nothing was approved")
			}
		}
		did, err := approve(body)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(fmt.Sprintf("approval %s: %s of %s\n", cli.Cell(did.ID),
			cli.Count(did.Occurrences, "occurrence"), cli.Cell(did.Window)))
	})
}

// approveFlags are the flags of an approval.
type approveFlags struct {
	from, until, person, reference, customer string

	starts []string
	yes    bool
}

// request returns the request of these flags, by an operator.
func (f approveFlags) request(as string) (api.ApproveRequest, error) {
	body := api.ApproveRequest{OrderRequest: api.OrderRequest{As: as}, For: f.person,
		Customer: f.customer, Reference: f.reference}
	var errs []error
	read := func(flag, text string) jobs.Time {
		if text == "" {
			return jobs.Time{}
		}
		t, err := cli.When(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
		return jobs.Time{Time: t.UTC()}
	}
	body.From, body.Until = read("from", f.from), read("until", f.until)
	for _, text := range f.starts {
		body.Starts = append(body.Starts, read("start", text))
	}
	span := f.from != "" || f.until != ""
	if (len(f.starts) > 0) == span || (f.from == "") != (f.until == "") {
		errs = append(errs, errors.New("want --from and --until, or --start"))
	}
	return body, errors.Join(errs...)
}

func newWindowsWithdraw() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "withdraw APPROVAL",
		Short: "Withdraw an approval: nothing begins in its occurrences any more",
		Long: `withdraw takes an approval back. Running jobs continue to their end; jobs that wait for
an occurrence are deferred when it begins.`,
		Example:           `  muster windows withdraw 5x2kq7ad --reason 'their line card is late'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeApprovals,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		path := "/v1/approvals/" + url.PathEscape(args[0]) + "/withdraw"
		return changeTimes(ctx, s, cli.Call{Path: path, Body: api.OrderRequest{Reason: reason, As: s.As}},
			"approval "+args[0]+" is withdrawn")
	})
}

// changeTimes gives an order that changes the timetable.
func changeTimes(ctx context.Context, s *cli.Session, q cli.Call, done string) error {
	q.Method, q.Bound = http.MethodPost, cli.SubmitTimeout
	var did api.WindowsChanged
	if err := s.Do(ctx, q, &did); err != nil {
		return err
	}
	if s.JSON {
		return s.WriteJSON(did)
	}
	text := ""
	for _, note := range did.Notes {
		text += "? " + cli.Cell(note) + "\n"
	}
	return s.Write(fmt.Sprintf("%s%s; version %d is in force\n", text, cli.Cell(done), did.Version))
}

func newWindowsFreeze() *cobra.Command {
	var from, until, reason string
	everyone, of := false, map[string]*string{}
	c := &cobra.Command{
		Use:   "freeze NAME",
		Short: "Let no work begin, on all hosts or on some",
		Long: `freeze lets no work of any kind begin on the hosts of a customer, a site or a group, on
one host or on all. Running jobs continue. The freeze holds from now or --from on, until
--until, that day included, or until somebody lifts it.`,
		Example: `  muster windows freeze outage --customer acme --reason INC-7
  muster windows freeze maintenance --site zrh1 --until +90m --reason CHG-9
  muster windows freeze year-end --everyone --from 2026-12-20 \
      --until 2027-01-03 --reason 'peak season'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	for level := windows.Customer; level <= windows.Host; level++ {
		name := level.String()
		of[name] = c.Flags().String(name, "", "the hosts of this `"+name+"`")
	}
	c.Flags().Lookup("host").Usage = "this `host`"
	c.Flags().BoolVar(&everyone, "everyone", false, "all hosts")
	c.Flags().StringVar(&from, "from", "", "`time` (default now)")
	c.Flags().StringVar(&until, "until", "",
		"`time` or +90m; a day alone is included (default until it is lifted)")
	cli.AddReason(c, &reason)
	cli.CompleteFlagWith(c, "customer", complete.Customers)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		body := api.FreezeRequest{OrderRequest: api.OrderRequest{Reason: reason, As: s.As},
			Name: args[0]}
		var errs []error
		given := 0
		if everyone {
			body.Level, given = windows.Everyone.String(), 1
		}
		for level, name := range of {
			if *name != "" {
				body.Level, body.Of = level, *name
				given++
			}
		}
		if given != 1 {
			errs = append(errs, errors.New("want one of --customer, --site, --group, --host and --everyone"))
		}
		for _, one := range []struct {
			flag, text string
			into       *jobs.Time
			read       func(string) (time.Time, error)
		}{{"from", from, &body.From, cli.When}, {"until", until, &body.Until, cli.WhenOver}} {
			if one.text == "" {
				continue
			}
			t, err := one.read(one.text)
			if err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", one.flag, err))
			}
			one.into.Time = t.UTC()
		}
		if reason == "" {
			errs = append(errs, errors.New("--reason is missing: say why, for the people whose work waits"))
		}
		if len(errs) > 0 {
			return cli.Exit(cli.ExitUsage, errors.Join(errs...))
		}
		return changeTimes(ctx, s, cli.Call{Path: "/v1/freezes", Body: body},
			"freeze "+args[0]+" is ordered")
	})
}

func newWindowsUnfreeze() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:               "unfreeze NAME",
		Short:             "Lift a freeze that was ordered by hand",
		Example:           `  muster windows unfreeze outage --reason 'INC-7 is closed'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeFreezes,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := cli.NeedReason(reason, "INC-7 is closed"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		path := "/v1/freezes/" + url.PathEscape(args[0]) + "/lift"
		return changeTimes(ctx, s, cli.Call{Path: path, Body: api.OrderRequest{Reason: reason, As: s.As}},
			"freeze "+args[0]+" is lifted")
	})
}

func completeApprovals(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	return completeFromWindows(c, args, func(l api.WindowList) (names []cobra.Completion) {
		for _, a := range l.Approvals {
			names = append(names, cobra.CompletionWithDesc(a.ID, cli.Cell(a.Window+" "+a.Ref)))
		}
		return names
	})
}

func completeFreezes(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	return completeFromWindows(c, args, func(l api.WindowList) (names []cobra.Completion) {
		for _, f := range l.Freezes {
			if f.Ordered != "" {
				names = append(names, cobra.CompletionWithDesc(f.Name, cli.Cell(f.For)))
			}
		}
		return names
	})
}

// completeWindows completes the name of a window.
func completeWindows(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	return completeFromWindows(c, args, func(l api.WindowList) (names []cobra.Completion) {
		for _, w := range l.Windows {
			names = append(names, cobra.CompletionWithDesc(w.Name, cli.Cell(w.For)))
		}
		return names
	})
}

func completeFromWindows(c *cobra.Command, args []string,
	names func(api.WindowList) []cobra.Completion) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	l, ok := cli.AskServer(c, func(ctx context.Context, c *cli.Client) (api.WindowList, error) {
		return windowList(ctx, c)
	})
	if !ok {
		return nil, cobra.ShellCompDirectiveError
	}
	return slices.Clip(names(l)), cobra.ShellCompDirectiveNoFileComp
}

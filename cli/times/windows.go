package times

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/watch"
	"muster/internal/files"
	"muster/jobs"
	"muster/windows"
)

// NewWindows makes the command windows.
func NewWindows() *cobra.Command {
	c := &cobra.Command{
		Use:     "windows",
		Aliases: []string{"window"},
		Short:   "Show, change and approve the times in which work may begin",
		Long: `In a service window work may begin on the hosts of a customer, a site or a group, or on
one host. If several of these levels have windows, only those of the most special level
count. Customers approve windows: an approval is for a window as it was shown, and any
change of the window voids the approval. A freeze lets no work begin at all.

Windows stand in files, which muster windows apply puts in force for all servers and
nodes. docs/WINDOWS.md describes the files.`,
		Example: `  muster windows apply windows.yaml --check
  muster windows next fw001 --count 5
  muster windows approve acme-sunday --from 2026-12-01 --until 2027-01-01`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newWindowsApply(), newWindowsList(), newWindowsShow(), newWindowsNext(),
		newWindowsExplain(), newWindowsCalendar(), newWindowsExport(), newWindowsApprove(),
		newWindowsWithdraw(),
		newWindowsFreeze(), newWindowsUnfreeze(), newWindowsAdopt())
	return c
}

func newWindowsApply() *cobra.Command {
	check := false
	c := &cobra.Command{
		Use:   "apply FILE …",
		Short: "Put windows and freezes of files in force",
		Long: `apply reads files with windows and freezes, and the iCalendar files that they name, and
puts them in force. If there are mistakes, it reports all at once and changes nothing. It
shows what changes; with --check it does nothing else.

  windows:
    - name: acme-first
      customer: acme            # or site, group, host
      zone: Europe/Zurich
      start: first Sunday 02:00 # or cron text; or dates: […]; or ics: FILE
      except: [2026-12-24]      # days on which it is not open
      end: "04:00"              # or length: 2h
      approval: required        # or none

Other starts: every Sunday 02:00; last Friday of March, September at 22:00; last day of
the month 23:00; every second week on Sunday 02:00 from 2026-01-04.

` + pruningHelp,
		Example: `  muster windows apply windows.yaml --check
  muster windows apply acme.yaml --prune --reason CHG-12
  muster windows apply customers/*.yaml --prune-all --if-version 17`,
		Args: cobra.MinimumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	reason := ""
	cli.AddReason(c, &reason)
	c.Flags().BoolVar(&check, "check", false, "only say what would change")
	var pruning windows.Pruning
	var expected api.Expected
	addPruning(c, &pruning)
	c.Flags().Int64Var(&expected.Version, "if-version", 0,
		"only if this `number` is the version in force; --check shows it")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		body, err := readWindows(ctx, args)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		body.Reason, body.As, body.Check = reason, s.As, true
		body.Pruning, body.Expected = pruning, expected
		// The check reports the state that it saw, and only that state is changed.
		var did api.WindowsChanged
		for _, body.Check = range slices.Compact([]bool{true, check}) {
			body.Basis, did = did.Basis, api.WindowsChanged{}
			err = s.Do(ctx, cli.Call{Method: http.MethodPut, Path: "/v1/windows", Body: body,
				Bound: cli.SubmitTimeout}, &did)
			if err != nil {
				return err
			}
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(changedText(did, check))
	})
}

// readWindows reads the files, and the files that they name, and reports all mistakes before
// anything is sent.
func readWindows(ctx context.Context, names []string) (api.WindowsRequest, error) {
	var body api.WindowsRequest
	var errs []error
	for _, name := range names {
		text, err := cli.ReadArgFile(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f := windows.File{Name: name, Content: string(text)}
		body.Files = append(body.Files, f)
		for _, ics := range windows.Attachments(f) {
			path := windows.Attached(name, ics)
			text, err := files.Read(path, cli.ArgFileMax)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", name, err))
				continue
			}
			body.Attached = append(body.Attached, windows.File{Name: path, Content: string(text)})
		}
	}
	_, err := windows.Parse(body.Files, body.Attached)
	return body, errors.Join(append(errs, err)...)
}

func changedText(d api.WindowsChanged, check bool) string {
	var b strings.Builder
	for _, part := range []struct {
		sign string
		list []string
	}{{"+", d.Added}, {"~", d.Changed}, {"-", d.Removed}} {
		for _, name := range part.list {
			fmt.Fprintf(&b, "%s %s\n", part.sign, cli.Cell(name))
		}
	}
	for _, v := range d.Voided {
		how, why := "is void for ever", "was changed"
		if check {
			how, why = "would be void for ever", "is changed"
		}
		if v.Gone {
			why = "is not there any more"
		}
		fmt.Fprintf(&b, "! approval %s %s: window %s %s\n", cli.Cell(v.Approval), how, cli.Cell(v.Window),
			why)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(&b, "? %s\n", cli.Cell(note))
	}
	b.WriteString(leftText(d.Left))
	switch {
	case check && !d.Any():
		b.WriteString("nothing would change\n")
	case check:
		fmt.Fprintf(&b, "nothing was changed (--check): version %d is in force\n", d.Version)
	case d.Already || !d.Any():
		fmt.Fprintf(&b, "nothing changed: version %d\n", d.Version)
	default:
		fmt.Fprintf(&b, "version %d is in force\n", d.Version)
	}
	return b.String()
}

func windowList(ctx context.Context, c *cli.Client) (api.WindowList, error) {
	var l api.WindowList
	err := c.Get(ctx, "/v1/windows", nil, &l)
	return l, err
}

func newWindowsList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List windows, freezes and approvals",
		Example:           "  muster windows ls\n  muster windows ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		l, err := windowList(ctx, s.Client)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(l)
		}
		watch.Banner(ctx, s)
		if l.Doubt != "" {
			s.Say("nobody vouches for this timetable: %s", cli.Cell(l.Doubt))
		}
		if len(l.Windows)+len(l.Freezes)+len(l.Approvals) == 0 {
			s.Say("nothing is agreed: write windows and `muster windows apply` them")
			return nil
		}
		return s.Write(listText(s.Screen, l))
	})
}

// listText shows windows, freezes and approvals.
func listText(s *cli.Screen, l api.WindowList) string {
	g := cli.NewGrid("WINDOW", "FOR", "BEGINS", "ENDS", "ZONE", "NEXT", "APPROVED")
	for _, w := range l.Windows {
		g.Add(cli.Cell(w.Name), cli.Cell(w.For), cli.Fit(cli.Cell(strings.Join(w.Starts, ", ")), 56),
			windowEnd(w),
			cli.Cell(w.Zone), nextStart(w.Next), approvedWords(s, w.Next))
	}
	f := cli.NewGrid("FREEZE", "FOR", "FROM", "UNTIL", "NOW", "WHY")
	for _, one := range l.Freezes {
		now := "-"
		switch {
		case one.Active:
			now = s.Colours.Paint(cli.Yellow, "frozen")
		case one.Over:
			now = "over"
		}
		f.Add(cli.Cell(one.Name), cli.Cell(one.For), cli.Moment(one.From), cli.Moment(one.Until), now,
			cli.OrDash(cli.Fit(cli.Cell(one.Reason), watch.LineColumns)))
	}
	a := cli.NewGrid("APPROVAL", "WINDOW", "BY", "FOR", "COVERS", "REFERENCE")
	for _, one := range l.Approvals {
		a.Add(cli.Cell(one.ID), cli.Cell(one.Window), cli.Cell(one.By), cli.OrDash(cli.Cell(one.For)),
			coversWords(s, one, l.Void), cli.OrDash(cli.Fit(cli.Cell(one.Ref), 30)))
	}
	return grids(s, g, f, a)
}

// grids renders the grids that have rows, with a blank line between two.
func grids(s *cli.Screen, all ...cli.Grid) string {
	var parts []string
	for _, g := range all {
		if len(g.Rows) > 0 {
			parts = append(parts, g.Render(s.TableWidth(), !s.Headless))
		}
	}
	return strings.Join(parts, "\n")
}

func coversWords(s *cli.Screen, a windows.Approval, void []string) string {
	if slices.Contains(void, a.ID) {
		return s.Colours.Paint(cli.Yellow, "void: "+cli.Cell(cmp.Or(a.VoidWhy, "the window was changed")))
	}
	if len(a.Starts) > 0 {
		return cli.Count(len(a.Starts), "occurrence")
	}
	return cli.Moment(jobs.Time{Time: a.From}) + " to " + cli.Moment(jobs.Time{Time: a.Until})
}

func windowEnd(w api.WindowInfo) string {
	switch {
	case w.End != "":
		return cli.Cell(w.End)
	case w.Length != "":
		return "after " + cli.Cell(w.Length)
	}
	return "-"
}

func nextStart(o *api.Occurrence) string {
	if o == nil {
		return "never"
	}
	return cli.Moment(o.Start)
}

func approvedWords(s *cli.Screen, o *api.Occurrence) string {
	switch {
	case o == nil:
		return "-"
	case o.Approved:
		return s.Colours.Paint(cli.Green, "yes")
	}
	return s.Colours.Paint(cli.Yellow, "no")
}

func newWindowsShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "show WINDOW",
		Short:             "Show a window as it is agreed",
		Example:           "  muster windows show acme-sunday\n  muster windows show acme-sunday -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWindows,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		l, err := windowList(ctx, s.Client)
		if err != nil {
			return err
		}
		for _, w := range l.Windows {
			if w.Name != args[0] {
				continue
			}
			if s.JSON {
				return s.WriteJSON(w)
			}
			return s.Write(windowDetails(w))
		}
		return fmt.Errorf("there is no window %q; `muster windows ls` lists them", args[0])
	})
}

func windowDetails(w api.WindowInfo) string {
	next := "it is not open again"
	if w.Next != nil {
		next = fmt.Sprintf("%s, approved: %v", cli.Cell(w.Next.LocalStart), w.Next.Approved)
	}
	return cli.Details([][2]string{{"window", cli.Cell(w.Name)}, {"for", cli.Cell(w.For)}, {"zone",
		cli.Cell(w.Zone)},
		{"begins", cli.Cell(strings.Join(w.Starts, ", "))}, {"ends", windowEnd(w)},
		{"cutoff", cli.Cell(w.Cutoff) + " before the end"}, {"valid from", cli.OrDash(cli.Cell(w.From))},
		{"valid until", cli.OrDash(cli.Cell(w.Until))}, {"except", cli.Cell(strings.Join(w.Except,
			", "))},
		{"runbooks", cli.Cell(strings.Join(w.Runbooks, ", ")) + allIfNone(w.Runbooks)},
		{"at its end", cli.Cell(w.AtEnd)}, {"if it changes", cli.Cell(w.OnChange)},
		{"approval", cli.Cell(w.Approval)}, {"hash", cli.Cell(w.Hash)}, {"next", next}}...)
}

func allIfNone(list []string) string {
	if len(list) > 0 {
		return ""
	}
	return "all that need a window"
}

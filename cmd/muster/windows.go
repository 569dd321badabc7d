package main

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
	"muster/internal/files"
	"muster/jobs"
	"muster/windows"
)

func newWindows() *cobra.Command {
	c := &cobra.Command{
		Use:     "windows",
		Aliases: []string{"window"},
		Short:   "Show and agree when work may be done",
		Long: `Service windows say when a customer, a site, a group or a host may be worked on; the
most special level that has windows holds alone. Customers approve them: an approval
is for a window as it was shown, and any change of the window voids it. A freeze lets
no work begin at all.

Windows are written in files, which muster windows apply puts in force for all
servers and nodes. docs/WINDOWS.md says how.`,
		Example: `  muster windows apply windows.yaml --check
  muster windows next fw001 --count 5
  muster windows approve acme-sunday --from 2026-12-01 --until 2027-01-01`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newWindowsApply(), newWindowsList(), newWindowsShow(), newWindowsNext(),
		newWindowsExplain(), newWindowsCalendar(), newWindowsExport(), newWindowsApprove(),
		newWindowsWithdraw(),
		newWindowsFreeze(), newWindowsUnfreeze())
	return c
}

func newWindowsApply() *cobra.Command {
	check := false
	c := &cobra.Command{
		Use:   "apply FILE …",
		Short: "Put windows and freezes of files in force",
		Long: `apply reads files with windows and freezes, and the iCalendar files that they name, and
puts them in force. Mistakes are told all at once, and nothing is changed. It says what
becomes different; with --check that is all it does.

  windows:
    - name: acme-first
      customer: acme            # or site, group, host
      zone: Europe/Zurich
      start: first Sunday 02:00 # or cron text; or dates: […]; or ics: FILE
      except: [2026-12-24]      # days on which it is not open
      end: "04:00"              # or length: 2h
      approval: required        # or none

Other words: every Sunday 02:00; last Friday of March, September at 22:00; last day of
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
	addReason(c, &reason)
	c.Flags().BoolVar(&check, "check", false, "only say what would change")
	var pruning windows.Pruning
	var expected api.Expected
	addPruning(c, &pruning)
	c.Flags().Int64Var(&expected.Version, "if-version", 0,
		"only if this `number` is the version in force; --check tells it")
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		body, err := readWindows(ctx, args)
		if err != nil {
			return exit(exitUsage, err)
		}
		body.Reason, body.As, body.Check = reason, s.as, true
		body.Pruning, body.Expected = pruning, expected
		// What is done is what was looked at: the check says what that was.
		var did api.WindowsChanged
		for _, body.Check = range slices.Compact([]bool{true, check}) {
			body.Basis, did = did.Basis, api.WindowsChanged{}
			err = s.do(ctx, call{method: http.MethodPut, path: "/v1/windows", body: body,
				bound: submitTimeout}, &did)
			if err != nil {
				return err
			}
		}
		if s.json {
			return s.writeJSON(did)
		}
		return s.write(changedText(did, check))
	})
}

// readWindows reads the files, and what they name, and tells all mistakes before
// anything is sent.
func readWindows(ctx context.Context, names []string) (api.WindowsRequest, error) {
	var body api.WindowsRequest
	var errs []error
	for _, name := range names {
		text, err := readArgFile(ctx, name)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		f := windows.File{Name: name, Content: string(text)}
		body.Files = append(body.Files, f)
		for _, ics := range windows.Attachments(f) {
			path := windows.Attached(name, ics)
			text, err := files.Read(path, argFileMax)
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
			fmt.Fprintf(&b, "%s %s\n", part.sign, cell(name))
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
		fmt.Fprintf(&b, "! approval %s %s: window %s %s\n", cell(v.Approval), how, cell(v.Window), why)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(&b, "? %s\n", cell(note))
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

func (c *client) windowList(ctx context.Context) (api.WindowList, error) {
	var l api.WindowList
	err := c.get(ctx, "/v1/windows", nil, &l)
	return l, err
}

func newWindowsList() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List windows, freezes and approvals",
		Example:           "  muster windows ls\n  muster windows ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *session, _ []string) error {
		l, err := s.windowList(ctx)
		if err != nil {
			return err
		}
		if s.json {
			return s.writeJSON(l)
		}
		if len(l.Windows)+len(l.Freezes) == 0 {
			s.say("nothing is agreed: write windows and `muster windows apply` them")
			return nil
		}
		g := newGrid("WINDOW", "FOR", "BEGINS", "ENDS", "ZONE", "NEXT", "APPROVED")
		for _, w := range l.Windows {
			g.add(cell(w.Name), cell(w.For), fit(cell(strings.Join(w.Starts, ", ")), 56), windowEnd(w),
				cell(w.Zone), nextStart(w.Next), s.approved(w.Next))
		}
		f := newGrid("FREEZE", "FOR", "FROM", "UNTIL", "NOW", "WHY")
		for _, one := range l.Freezes {
			now := "-"
			switch {
			case one.Active:
				now = s.colours.paint(yellow, "frozen")
			case one.Over:
				now = "over"
			}
			f.add(cell(one.Name), cell(one.For), moment(one.From), moment(one.Until), now,
				orDash(fit(cell(one.Reason), lineColumns)))
		}
		a := newGrid("APPROVAL", "WINDOW", "BY", "FOR", "COVERS", "REFERENCE")
		for _, one := range l.Approvals {
			a.add(cell(one.ID), cell(one.Window), cell(one.By), orDash(cell(one.For)),
				s.covers(one, l.Void), orDash(fit(cell(one.Ref), 30)))
		}
		return s.write(s.grids(g, f, a))
	})
}

// grids renders those that have rows, with a blank line between two.
func (s *session) grids(all ...grid) string {
	var parts []string
	for _, g := range all {
		if len(g.rows) > 0 {
			parts = append(parts, g.render(s.tableWidth(), !s.headless))
		}
	}
	return strings.Join(parts, "\n")
}

func (s *session) covers(a windows.Approval, void []string) string {
	if slices.Contains(void, a.ID) {
		return s.colours.paint(yellow, "void: "+cell(cmp.Or(a.VoidWhy, "the window was changed")))
	}
	if len(a.Starts) > 0 {
		return count(len(a.Starts), "occurrence")
	}
	return moment(jobs.Time{Time: a.From}) + " to " + moment(jobs.Time{Time: a.Until})
}

func windowEnd(w api.WindowInfo) string {
	switch {
	case w.End != "":
		return cell(w.End)
	case w.Length != "":
		return "after " + cell(w.Length)
	}
	return "-"
}

func nextStart(o *api.Occurrence) string {
	if o == nil {
		return "never"
	}
	return moment(o.Start)
}

func (s *session) approved(o *api.Occurrence) string {
	switch {
	case o == nil:
		return "-"
	case o.Approved:
		return s.colours.paint(green, "yes")
	}
	return s.colours.paint(yellow, "no")
}

func newWindowsShow() *cobra.Command {
	return clientCommand(&cobra.Command{
		Use:               "show WINDOW",
		Short:             "Show a window as it is agreed",
		Example:           "  muster windows show acme-sunday\n  muster windows show acme-sunday -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeWindows,
	}, func(ctx context.Context, s *session, args []string) error {
		l, err := s.windowList(ctx)
		if err != nil {
			return err
		}
		for _, w := range l.Windows {
			if w.Name != args[0] {
				continue
			}
			if s.json {
				return s.writeJSON(w)
			}
			return s.write(windowDetails(w))
		}
		return fmt.Errorf("there is no window %q; `muster windows ls` lists them", args[0])
	})
}

func windowDetails(w api.WindowInfo) string {
	next := "it is not open again"
	if w.Next != nil {
		next = fmt.Sprintf("%s, approved: %v", cell(w.Next.LocalStart), w.Next.Approved)
	}
	return details([][2]string{{"window", cell(w.Name)}, {"for", cell(w.For)}, {"zone", cell(w.Zone)},
		{"begins", cell(strings.Join(w.Starts, ", "))}, {"ends", windowEnd(w)},
		{"cutoff", cell(w.Cutoff) + " before the end"}, {"valid from", orDash(cell(w.From))},
		{"valid until", orDash(cell(w.Until))}, {"except", cell(strings.Join(w.Except, ", "))},
		{"runbooks", cell(strings.Join(w.Runbooks, ", ")) + allIfNone(w.Runbooks)},
		{"at its end", cell(w.AtEnd)}, {"if it changes", cell(w.OnChange)},
		{"approval", cell(w.Approval)}, {"hash", cell(w.Hash)}, {"next", next}}...)
}

func allIfNone(list []string) string {
	if len(list) > 0 {
		return ""
	}
	return "all that need a window"
}

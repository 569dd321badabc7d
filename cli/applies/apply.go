package applies

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// NewApply makes the command apply.
func NewApply() *cobra.Command {
	var how api.ApplyRequest
	var diff bool
	c := &cobra.Command{
		Use:   "apply DIR|FILE|- …",
		Short: "Put runbooks, schedules, triggers and more of files in force, all or none",
		Long: `apply reads files in which each YAML document is an entry and begins with its kind, and
puts all of them in force, or none. It adds and changes what the files name; everything
else stays. It reports all mistakes at once, with file and line, and then does nothing.
Applying the same again changes nothing. A window that needs an approval opens nothing
before somebody approves it; a changed window voids its approvals. The kinds are runbook,
schedule, window, freeze, trigger and notify, a rule of notifications; what stands in the
files of a server is changed there.

  kind: window
  name: acme-sunday
  customer: acme
  zone: Europe/Zurich
  start: every Sunday 02:00
  length: 2h
  approval: required
  ---
  kind: schedule
  name: acme-nightly
  …

With --origin the entries belong to that place, such as a repository: from then on
nothing else changes them, and --prune removes entries of this origin, and of no other,
that the files do not name. docs/APPLY.md describes the files.`,
		Example: `  muster apply conf/ --check --diff
  muster apply conf/ --origin git:rules --prune --reason CHG-12
  muster apply acme.yaml --if-version 17
  muster apply conf/ --origin git:new --take-from git:rules`,
		Args: cobra.MinimumNArgs(1),
	}
	addFlags(c, &how, &diff)
	c.AddCommand(newList(), newShow())
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		body, err := read(ctx, args)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		how.Files, how.Attached, how.As = body.Files, body.Attached, s.As
		id := jobs.NewTaskID(s.Now(), cli.Chance())
		how.ID = string(id)
		did, err := cli.HandIn[api.Applied](ctx, s.Client, id, cli.Call{Method: http.MethodPost,
			Path: "/v1/apply", Body: how, Bound: cli.SubmitTimeout},
			func(error, time.Duration) { s.Say("no answer, trying again") })
		if err != nil {
			return cli.RefusedUse(err)
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(text(did, diff))
	})
}

func addFlags(c *cobra.Command, how *api.ApplyRequest, diff *bool) {
	f := c.Flags()
	f.BoolVar(&how.Check, "check", false, "only say what would change")
	f.BoolVar(diff, "diff", false, "show the values that differ")
	f.BoolVar(&how.Prune, "prune", false, "remove entries of the origin that no file names")
	f.BoolVar(&how.Empty, "empty", false, "with --prune, also if the files have no entry at all")
	f.StringVar(&how.Origin, "origin", "", "the `place` from which the entries come")
	f.StringVar(&how.TakeFrom, "take-from", "", "take the entries over from this `origin`")
	f.Int64Var(&how.IfVersion, "if-version", 0,
		"only if this `number` is the version in force; muster apply ls shows it")
	cli.AddReason(c, &how.Reason)
}

// signs has the sign of each change in a list; what is unchanged has none, and no line.
var signs = map[string]string{"added": "+", "changed": "~", "removed": "-", "kept": "?"}

// text shows what an apply did, or would do.
func text(d api.Applied, diff bool) string {
	var b strings.Builder
	for _, e := range d.Entries {
		sign := signs[e.Change]
		if sign == "" && !e.Moved {
			continue
		}
		line := cli.Cell(e.Kind) + " " + cli.Cell(e.Name)
		switch {
		case e.Change == "kept":
			line += " is not in the files, and stays in force: --prune removes it"
		case e.Moved && e.Change != "removed" && d.Origin != "":
			line += " comes from " + cli.Cell(d.Origin) + " from now on"
		case e.Moved && e.Change == "unchanged":
			line += " comes from nowhere else any more"
		}
		fmt.Fprintf(&b, "%s %s\n", orSame(sign), line)
		if diff {
			for _, one := range e.Differences {
				fmt.Fprintf(&b, "    %s\n", cli.Cell(one))
			}
		}
	}
	void := "is void for ever"
	if d.Check {
		void = "would be void for ever"
	}
	for _, id := range d.Void {
		fmt.Fprintf(&b, "! approval %s %s: its window is changed or removed\n", cli.Cell(id), void)
	}
	for _, note := range d.Notes {
		fmt.Fprintf(&b, "? %s\n", cli.Cell(note))
	}
	if n := d.Counts["unchanged"]; n > 0 {
		fmt.Fprintf(&b, "as in force: %d\n", n)
	}
	switch {
	case d.Already && d.Check:
		b.WriteString("nothing would change\n")
	case d.Check:
		fmt.Fprintf(&b, "nothing was changed (--check): version %d is in force\n", d.Version)
	case d.Already:
		fmt.Fprintf(&b, "nothing changed: version %d\n", d.Version)
	default:
		fmt.Fprintf(&b, "version %d is in force\n", d.Version)
	}
	return b.String()
}

func orSame(sign string) string {
	if sign == "" {
		return "="
	}
	return sign
}

func newList() *cobra.Command {
	many := 20
	c := &cobra.Command{
		Use:               "ls",
		Aliases:           []string{"list"},
		Short:             "List what was applied, the newest first",
		Example:           "  muster apply ls\n  muster apply ls --count 100 -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().IntVar(&many, "count", many, "how many")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.AppliedList
		q := url.Values{"count": {strconv.Itoa(many)}}
		if err := s.Get(ctx, "/v1/applies", q, &l); err != nil {
			return cli.RefusedUse(err)
		}
		g := cli.NewGrid("VERSION", "APPLY", "AT", "BY", "ORIGIN", "COMMIT", "DID", "REASON")
		for _, a := range l.Applies {
			g.Add(strconv.FormatInt(a.Version, 10), cli.Cell(a.ID), cli.Moment(a.At), cli.Cell(a.By),
				cli.OrDash(cli.Cell(a.Origin)),
				cli.OrDash(cli.Cell(a.Commit[:min(len(a.Commit), 12)])), counts(a),
				cli.OrDash(cli.Fit(cli.Cell(a.Reason), 40)))
			if a.Doubt != "" {
				s.Say("version %d is not believed: %s", a.Version, cli.Cell(a.Doubt))
			}
		}
		return s.List(cli.Filled(l.Applies), g, "nothing was applied yet: `muster apply DIR` does")
	})
}

// counts returns how many entries an apply changed, in words.
func counts(a api.Applied) string {
	var parts []string
	for _, change := range []string{"added", "changed", "removed"} {
		if n := a.Counts[change]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", change, n))
		}
	}
	return cli.OrDash(strings.Join(parts, ", "))
}

func newShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:               "show APPLY|VERSION",
		Short:             "Show what an apply did, value by value",
		Example:           "  muster apply show 17\n  muster apply show 0wcy7y2fb2 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		var a api.Applied
		if err := s.Get(ctx, "/v1/applies/"+url.PathEscape(args[0]), nil, &a); err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(a)
		}
		if a.Doubt != "" {
			s.Say("nobody vouches for this: %s", cli.Cell(a.Doubt))
		}
		head := cli.Details([][2]string{{"apply", cli.Cell(a.ID)},
			{"version", strconv.FormatInt(a.Version, 10)}, {"at", cli.Moment(a.At)}, {"by", cli.Cell(a.By)},
			{"origin", cli.OrDash(cli.Cell(a.Origin))}, {"commit", cli.OrDash(cli.Cell(a.Commit))},
			{"reason", cli.OrDash(cli.Cell(a.Reason))},
			{"did", counts(a)}}...)
		last := "version " + strconv.FormatInt(a.Version, 10) + " is in force"
		body, _, _ := strings.Cut(text(a, true), last)
		return s.Write(head + body)
	})
}

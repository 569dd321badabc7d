package repositories

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/checks"
	"muster/fleet"
	"muster/internal/repofile"
	"muster/internal/wording"
)

// New makes the command repository.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:     "repository",
		Aliases: []string{"repo"},
		Short:   "Show the repositories of git that configure muster, and look at one",
		Long: `A server follows branches of git repositories, and puts their files in force as
muster apply does: all or none. docs/TUTORIAL_GITOPS.md says how; the file of
repositories says which branches, and what each may change.`,
		Example: `  muster repository ls
  muster repository show rules
  muster repository poll rules`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newShow(), newPoll(), newCheck())
	return c
}

func all(ctx context.Context, s *cli.Session) (api.Repositories, error) {
	var l api.Repositories
	err := s.Get(ctx, "/v1/repositories", nil, &l)
	return l, err
}

// find returns one repository.
func find(ctx context.Context, s *cli.Session, name string) (api.Repository, error) {
	l, err := all(ctx, s)
	if err != nil {
		return api.Repository{}, err
	}
	i := slices.IndexFunc(l.Repositories, func(r api.Repository) bool { return r.Name == name })
	if i < 0 {
		return api.Repository{}, cli.Exit(cli.ExitUsage, fmt.Errorf("there is no repository %s: "+
			"`muster repository ls` lists those that are", wording.Quote(name)))
	}
	return l.Repositories[i], nil
}

func short(commit string) string {
	return cli.OrDash(cli.Cell(commit[:min(len(commit), 12)]))
}

// stateOf says in a word how a repository is.
func stateOf(r api.Repository) string {
	switch {
	case r.State.Error == "" && r.State.Commit != "":
		return "in force"
	case r.State.Error == "":
		return "not read yet"
	case r.State.Refused:
		return "refused"
	}
	return "not reached"
}

func newList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the repositories",
		Long: `ls lists the repositories with the commit in force. STATE is that of the newest commit:
in force, refused (its content is wrong), or not reached (it could not be read).`,
		Example:           "  muster repository ls\n  muster repository ls -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		l, err := all(ctx, s)
		if err != nil {
			return err
		}
		if l.Complaint != "" {
			s.Say("%s", cli.Cell(l.Complaint))
		}
		g := cli.NewGrid("REPOSITORY", "BRANCH", "IN FORCE", ">VERSION", "STATE", "LOOKED", "CUSTOMERS",
			"URL")
		for _, r := range l.Repositories {
			g.Add(cli.Cell(r.Name), cli.Cell(r.Branch), short(r.State.Commit),
				strconv.FormatInt(r.State.Version, 10), stateOf(r), cli.Moment(r.State.Looked),
				whose(r), cli.Cell(r.URL))
		}
		return s.List(cli.Filled(l.Repositories), g, "no repository configures muster: "+
			"docs/TUTORIAL_GITOPS.md says how")
	})
}

func whose(r api.Repository) string {
	if len(r.Customers) == 0 {
		return "all"
	}
	return cli.Fit(cli.Cell(strings.Join(r.Customers, ",")), 40)
}

func newShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "show NAME",
		Short: "Show a repository: the commit in force, the last look, what went wrong",
		Example: `  muster repository show rules
  muster repository show rules -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		r, err := find(ctx, s, args[0])
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(r)
		}
		return s.Write(text(r))
	})
}

// text describes a repository.
func text(r api.Repository) string {
	signed := "not asked for"
	if r.Signed {
		signed = "needed"
	}
	pairs := [][2]string{{"repository", cli.Cell(r.Name)}, {"url", cli.Cell(r.URL)},
		{"branch", cli.Cell(r.Branch)}, {"folder", cli.OrDash(cli.Cell(r.Path))},
		{"origin", cli.Cell(r.Origin)}, {"customers", whose(r)},
		{"kinds", cli.Cell(strings.Join(r.Kinds, ", "))}, {"signatures", signed},
		{"event source", cli.OrDash(cli.Cell(r.Source))},
		{"in force", cli.OrDash(cli.Cell(r.State.Commit))},
		{"subject", cli.OrDash(cli.Cell(r.State.Subject))},
		{"signed by", cli.OrDash(cli.Cell(r.State.Signer))},
		{"version", strconv.FormatInt(r.State.Version, 10)},
		{"since", cli.Moment(r.State.Since)}, {"newest", cli.OrDash(cli.Cell(r.State.Seen))},
		{"looked", cli.Moment(r.State.Looked)}, {"state", stateOf(r)}}
	if r.State.Adrift != 0 {
		pairs = append(pairs, [2]string{"adrift", adrift(r.State.Adrift)})
	}
	out := cli.Details(pairs...)
	if r.State.Doubt != "" {
		out += "what Redis says of it is not believed: " + cli.Cell(r.State.Doubt) + "\n"
	}
	for line := range strings.SplitSeq(r.State.Error, "\n") {
		if line != "" {
			out += "! " + cli.Cell(line) + "\n"
		}
	}
	return out
}

func adrift(n int) string {
	if n < 0 {
		return "not known"
	}
	return cli.Count(n, "entry") + " differed from the commit in force"
}

func newPoll() *cobra.Command {
	var body api.RepositoryPoll
	c := &cobra.Command{
		Use:   "poll NAME",
		Short: "Look at a repository at once, and wait until that is done",
		Long: `poll lets the server with the duty look at a repository at once, waits until it has, and
shows what came of it. With --accept a commit may come into force although it does not
descend from the one in force, such as after somebody has rewritten the branch on
purpose: name the whole commit.

Exit codes: 0 the newest commit is in force, 1 it is not, 2 wrong use, 3 the server does
not answer.`,
		Example: `  muster repository poll rules
  muster repository poll rules --accept 83f074d9bafffe4fa1a47112d41085517e3d8e56 \
    --reason 'a password was taken out of its history'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&body.Accept, "accept", "", "take this `commit`, although history goes back")
	cli.AddReason(c, &body.Reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		body.As = s.As
		var asked api.RepositoryAsked
		path := "/v1/repositories/" + url.PathEscape(args[0]) + "/poll"
		if err := s.Give(ctx, path, body, &asked); err != nil {
			return cli.RefusedUse(err)
		}
		r, err := heard(ctx, s, args[0], asked.Asked)
		switch {
		case err != nil:
			return err
		case s.JSON:
			err = s.WriteJSON(r)
		default:
			err = s.Write(text(r))
		}
		if err == nil && r.State.Error != "" {
			err = cli.ExitWith(cli.ExitNotAll)
		}
		return err
	})
}

// The pauses while a server looks, and the time for which people wait.
const (
	heardEvery = 300 * time.Millisecond
	heardMost  = 5 * time.Minute
)

// heard waits until a server has looked at a repository.
func heard(ctx context.Context, s *cli.Session, name string, asked int64) (api.Repository, error) {
	for end := s.Now().Add(heardMost); ; {
		r, err := find(ctx, s, name)
		if err != nil || r.State.Heard >= asked {
			return r, err
		}
		if s.Now().After(end) {
			return r, cli.Exit(cli.ExitNotAll, fmt.Errorf("no server has looked within %s: `muster health` "+
				"says which one has the duty repositories", heardMost))
		}
		if !cli.Sleep(ctx, heardEvery) {
			return r, ctx.Err()
		}
	}
}

func newCheck() *cobra.Command {
	return checks.New(&cobra.Command{
		Short: "Report the mistakes in a file of repositories",
		Long: `check lists every mistake in a file of repositories with its line. It asks no server, and
no repository.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or a file cannot be read.`,
		Example: "  muster repository check repositories.yaml\n" +
			"  muster repository check repositories.yaml -o json",
	}, func(src fleet.Source) (map[string]int, string, error) {
		set, err := repofile.Parse(src)
		n := len(set.All())
		return map[string]int{"repositories": n}, fmt.Sprintf("repositories: %d", n), err
	})
}

package bundle

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/reach"
	"muster/internal/settings"
)

// flags are those of the command.
type flags struct {
	conf *reach.FileFlags
	out  string
	list bool
	logs []string
}

// New makes the command support-bundle.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:   "support-bundle",
		Short: "Put what somebody far away needs to find a fault into one file",
		Long: `support-bundle collects into one tar.gz what somebody who is not here needs to find a
fault: versions, the configuration without its secrets, the findings of muster doctor,
health, nodes, queues, history, the newest tasks and entries of the audit log in one
line each, metrics, INFO and settings of Redis, and the last lines of the logs. In it
manifest.json says what is there, with hashes, and what was left out and why.

No secret is in it. What may be shown is named key by key; passwords, tokens, keys,
arguments of tasks, output of hosts, and reasons that people wrote are no part of it: in
logs and in words about pauses they are covered. All texts are searched once more for the
secrets of muster.yaml and of its files, for what looks like one, and for addresses of
mail, of which the name is covered. Names of hosts, people and customers are in it: look
before you send it.

Run it as root or as the user muster on the machine of a server. What the server or a
file does not give to you is left out and named; so is all of a server that does not
answer. The logs are those of systemd, or the files that --log names. Nothing is changed.

Exit codes: 0 all is in it, 1 something was left out or the file could not be written, 2
wrong use.`,
		Example: `  muster support-bundle
  muster support-bundle --list
  muster support-bundle --out /tmp/case-4711.tar.gz --log /var/log/muster/server.log
  muster support-bundle -o json | jq '.left_out'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := flags{conf: reach.AddFileFlags(c)}
	c.Flags().StringVar(&f.out, "out", "",
		"`file` to write, which must be new (default muster-support-TIME.tar.gz)")
	c.Flags().BoolVar(&f.list, "list", false, "collect and print what would be in it; write nothing")
	c.Flags().StringArrayVar(&f.logs, "log", nil,
		"a `file` with the log of a role, in place of systemd's; may be repeated")
	c.MarkFlagsMutuallyExclusive("out", "list")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		return f.run(ctx, s)
	})
}

func (f flags) run(ctx context.Context, s *cli.Session) error {
	set, wrong := f.conf.Settings()
	scrub := newScrubber(secretsOf(f.conf.File(), set))
	c, err := site{s: s, set: set, wrong: wrong, flags: f}.collect(ctx, scrub)
	if err != nil {
		return err
	}
	if !f.list {
		text, err := c.archive(scrub)
		if err != nil {
			return err
		}
		if c.File = f.out; c.File == "" {
			c.File = folderOf(c.Made) + ".tar.gz"
		}
		if err := save(c.File, text); err != nil {
			return err
		}
	}
	return f.tell(s, c.Manifest, scrub)
}

// tell prints what is in the bundle.
func (f flags) tell(s *cli.Session, m Manifest, scrub *scrubber) (err error) {
	m.Covered = scrub.covered
	switch {
	case s.JSON:
		err = s.WriteJSON(m)
	case f.list:
		err = s.List(m.Parts, m.table(), "nothing could be read")
	default:
		err = s.Write(fmt.Sprintf("%s: %s, %s covered\n", cli.Cell(m.File),
			cli.Count(len(m.Parts), "part"), cli.Count(m.Covered, "possible secret")))
	}
	if err != nil || len(m.LeftOut) == 0 {
		return err
	}
	if !s.JSON {
		s.Say("%s", m.words())
	}
	return cli.Exit(cli.ExitNotAll, nil)
}

// site is the place at which a bundle is made.
type site struct {
	s     *cli.Session
	set   settings.Settings
	wrong error // what is wrong with the configuration
	flags flags
}

package login

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"muster/cli"
)

// NewLogin makes the command login.
func NewLogin() *cobra.Command {
	var inBrowser bool
	c := cli.Command(&cobra.Command{
		Use:   "login --browser",
		Short: "Log a browser in",
		Long: `login --browser prints a link that logs a browser in as whoever calls: the user of the
server's machine, over its unix socket, or the owner of the token in MUSTER_TOKEN. The
link works once, for a minute. Whoever opens it first gets the session, so give it to
nobody.

The session ends after 12 hours, when nobody uses it for 8, or with the token that it was
begun with; muster session ls lists sessions. The server needs a port that the browser
reaches (server.listen), and the key that muster init makes.`,
		Example:           "  muster login --browser",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		if !inBrowser {
			return cli.Exit(cli.ExitUsage, errors.New("want --browser: the command line needs no login, "+
				"the unix socket or MUSTER_TOKEN says who you are (muster whoami)"))
		}
		return browser(ctx, s)
	})
	c.Flags().BoolVar(&inBrowser, "browser", false, "print a link that logs a browser in, once")
	return c
}

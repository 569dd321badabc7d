package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/internal/logins"
	"muster/internal/loopback"
)

// NewLogin makes the command login.
func NewLogin() *cobra.Command {
	var inBrowser, byDevice bool
	c := cli.Command(&cobra.Command{
		Use:   "login [--browser | --device]",
		Short: "Log in with the identity provider, or log a browser in",
		Long: `login logs you in at the server that --server or MUSTER_URL names, with the identity
provider that it asks (server.oidc). It prints a link: open it in a browser on this
machine, compare the word that the page shows, and log in there. On a machine without a
browser --device prints a code that you type on another machine, if the server allows
that. Never confirm a code that somebody sends you.

The session is kept in ~/.config/muster/logins, for you only, and ends after 12 hours, or
when nobody uses it for 8. MUSTER_TOKEN comes before it. Over a unix socket nobody needs
a login: the kernel says who calls.

login --browser prints a link that logs a browser in as whoever calls: the user of the
server's machine, over its unix socket, the owner of the token in MUSTER_TOKEN, or who
has logged in. The link works once, for a minute. Whoever opens it first gets the
session, so give it to nobody. The server needs a port that the browser reaches
(server.listen), and the key that muster init makes. muster session ls lists sessions.`,
		Example: `  muster login --server https://muster.example:7070
  muster login --device
  muster login --browser`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		if inBrowser {
			return browser(ctx, s)
		}
		if err := checkPlace(s.Place); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		by := program
		if byDevice {
			by = device
		}
		t, err := by(ctx, s)
		if err != nil {
			return err
		}
		return keep(s, t)
	})
	c.Flags().BoolVar(&inBrowser, "browser", false, "print a link that logs a browser in, once")
	c.Flags().BoolVar(&byDevice, "device", false, "log in by a code that you type on another machine")
	c.MarkFlagsMutuallyExclusive("browser", "device")
	return c
}

// checkPlace returns an error unless somebody can log in at a server.
func checkPlace(place string) error {
	u, err := url.Parse(place)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("over a unix socket the kernel says who you are (muster whoami): name the " +
			"server elsewhere with --server or MUSTER_URL; --browser logs a browser in")
	}
	if u.Scheme == "http" && !loopback.Host(u.Hostname()) {
		return fmt.Errorf("the session would travel to %s unencrypted: use https://", place)
	}
	return nil
}

// keep keeps the session and says who has logged in.
func keep(s *cli.Session, t api.LoginToken) error {
	err := logins.Keep(logins.Login{Server: s.Place, Token: t.Token, Session: t.Session,
		Principal: t.Principal, Expires: t.Expires.Time})
	if err != nil {
		return err
	}
	if os.Getenv("MUSTER_TOKEN") != "" {
		s.Say("MUSTER_TOKEN is set, and comes before this login")
	}
	t.Token = ""
	if s.JSON {
		return s.WriteJSON(t)
	}
	return s.Write("you are " + cli.Cell(t.Principal) + " at " + cli.Cell(s.Place) + " until " +
		cli.Moment(t.Expires) + "\n")
}

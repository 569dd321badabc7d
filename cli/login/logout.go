package login

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/internal/logins"
)

// NewLogout makes the command logout.
func NewLogout() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "logout",
		Short: "End the session that muster login has begun",
		Long: `logout ends your session at the server that --server or MUSTER_URL names, and removes it
from this machine. It is removed also if the server does not answer; then the session
ends by itself, and muster session rm ends it sooner. Sessions of browsers go on.`,
		Example:           "  muster logout\n  muster logout --server https://muster.example:7070",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		l, err := logins.Find(s.Place)
		if errors.Is(err, fs.ErrNotExist) {
			return cli.Exit(cli.ExitNotAll, fmt.Errorf("there is no login at %s on this machine", s.Place))
		}
		if err != nil {
			return err
		}
		ended := endOwn(ctx, s, l)
		if err := logins.Drop(s.Place); err != nil {
			return errors.Join(err, ended)
		}
		if ended != nil {
			return fmt.Errorf("the login is removed here, but the server has not ended the session %s, "+
				"which lives until %s: %w", l.Session, l.Expires.UTC().Format("15:04 UTC"), ended)
		}
		if s.JSON {
			return s.WriteJSON(map[string]string{"ended": l.Session})
		}
		return s.Write("logged out at " + cli.Cell(s.Place) + "\n")
	})
}

// endOwn ends the session of a login, whatever MUSTER_TOKEN has. One that the server does not know
// has ended.
func endOwn(ctx context.Context, s *cli.Session, l logins.Login) error {
	c, err := cli.NewClient(l.Server, l.Token)
	if err != nil {
		return err
	}
	c.HTTP = s.HTTP // it knows the certificates
	err = c.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/logout", Bound: cli.CallTimeout}, nil)
	var no *cli.Refusal
	if errors.As(err, &no) && no.Status == http.StatusUnauthorized {
		return nil
	}
	return err
}

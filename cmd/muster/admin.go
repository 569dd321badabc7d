package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"muster/audit"
	"muster/cli"
	"muster/cli/books"
	"muster/cli/reset"
	"muster/internal/settings"
	"muster/jobs/queue"
	"muster/jobs/queue/keys"
	"muster/jobs/queue/wipe"
)

func newAdmin() *cobra.Command {
	admin, c := reset.New(wipe.Rules)
	f, o, output := addRoleFlags(c, keys.RoleServer), reset.Flags{}, ""
	o.Add(c)
	books.OutputFlag(c, &output)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := errors.Join(cli.CheckOutput(output), o.Check()); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		s, err := f.read()
		if err != nil {
			return err
		}
		k, err := settings.ServerKeys(s.Server.Key)()
		if err == nil && k.None() {
			err = errors.New("there is no key of servers, so this installation has no name: server.key " +
				"names the key that muster init has made")
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		q, err := queue.OpenLazy(s.Queue())
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		defer q.Close()
		screen := cli.NewScreen(c)
		screen.JSON = output == cli.OutputJSON
		return o.Run(c, reset.Place{House: wipe.New(q), Installation: k.Installation(),
			Redis: q.Config().Where(), Audit: resetAudit(s)}, screen)
	}
	return admin
}

// resetAudit writes the entries of a reset, for which no server is needed.
func resetAudit(s settings.Settings) reset.Audit {
	return func(ctx context.Context, of, reason string) (func(error) error, error) {
		l, err := openAudit(s, nil, settings.ServerKeys(s.Server.Key), newLogger(s.Log, "reset"))
		if err != nil {
			return nil, err
		}
		return l.Scribe.ByHand(ctx, audit.Draft{Name: ownName(), Private: audit.Private{Reason: reason},
			Entry: audit.Entry{Kind: audit.KindOrder, Verb: "installation.reset",
				Object: "installation/" + of}})
	}
}

package main

import (
	"context"

	"github.com/spf13/cobra"

	"muster/audit"
	"muster/cli/backup"
	"muster/internal/settings"
)

// newBackup makes the command backup, which writes into the audit log without a server.
func newBackup() *cobra.Command {
	return backup.New(func(ctx context.Context, s settings.Settings, e backup.Entry) (
		func(error) error, error) {
		l, err := openAudit(s, nil, settings.ServerKeys(s.Server.Key), newLogger(s.Log, "backup"))
		if err != nil {
			return nil, err
		}
		return l.Scribe.ByHand(ctx, audit.Draft{Name: ownName(), Private: audit.Private{Reason: e.Reason},
			Entry: audit.Entry{Kind: audit.KindOrder, Verb: e.Verb,
				Object: "installation/" + e.Installation}})
	})
}

package ops

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// NewWhoami makes the command whoami.
func NewWhoami() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "whoami",
		Short: "Show who the server takes you for, and what proves it",
		Long: `whoami asks the server who you are: os:alice, a user of its machine, by its unix
socket; the owner of the token in MUSTER_TOKEN; oidc:ISSUER#SUBJECT after muster login;
or cert:NAME by the certificate in MUSTER_CLIENT_CERT. History and the audit log have
that name.

The verbs are all that you may do on some host; docs/ACCESS.md has their meaning, and
says how to find out where. The groups are those that grants can name.

Exit codes: 0 it knows you, 1 it does not, 3 the server does not answer.`,
		Example:           "  muster whoami\n  muster whoami -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var w api.Whoami
		if err := s.Get(ctx, "/v1/whoami", nil, &w); err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(w)
		}
		text := cli.Cell(w.Principal) + ", by " + cli.Cell(w.Proof)
		if id := cmp.Or(w.Token, w.Session); id != "" {
			text += " " + cli.Cell(id)
		}
		if !w.Expires.IsZero() {
			text += ", until " + cli.Moment(w.Expires)
		}
		switch {
		case w.Admin:
			text += "; an admin"
		case len(w.Verbs) == 0:
			text += "; may do nothing: no grant is for this name or its groups"
		default:
			text += "; may " + cli.Cell(strings.Join(w.Verbs, ", "))
		}
		for _, group := range w.Groups {
			text += "\n  " + cli.Cell(group)
		}
		return s.Write(text + "\n")
	})
}

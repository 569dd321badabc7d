// Package dnssec has the command dnssec: it shows the keys of DNS zones and their rollovers.
//
// Floor 6: may import cli, cli/complete and what is below.
package dnssec

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// New makes the command dnssec.
func New() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "dnssec [ZONE]",
		Short: "Show the keys of DNS zones and their rollovers",
		Long: `dnssec shows for each DNS zone, on the host that signs it, which keys it has, how
the servers are, and how far a rollover is: its step, what it waits for, when it
looks again, and the times that the policy of the zone gives.

All of it is what jobs of the runbooks dnssec and dnssec-status said, as of their
time: no name server is asked. To look now:

  muster run dnssec-status --on HOST --arg zone=ZONE`,
		Example: `  muster dnssec
  muster dnssec example.com
  muster dnssec -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		query := url.Values{}
		if len(args) > 0 {
			query.Set("name", args[0])
		}
		var l api.DNSSECList
		if err := s.Client.Get(ctx, "/v1/dnssec", query, &l); err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(l)
		}
		return s.Write(words(l))
	})
}

// words describes zones for people. The texts come from hosts.
func words(l api.DNSSECList) string {
	var b strings.Builder
	if len(l.Zones) == 0 {
		b.WriteString("no job of dnssec or dnssec-status that you may see is known\n")
	}
	for _, z := range l.Zones {
		fmt.Fprintf(&b, "%s on %s\n", cli.Cell(z.Name), cli.Cell(z.Host))
		if z.Status != nil {
			status(&b, *z.Status)
		} else {
			b.WriteString("  keys      not known: no job of dnssec-status\n")
		}
		if z.Roll != nil {
			roll(&b, *z.Roll)
		}
	}
	for _, lack := range l.Lacks {
		fmt.Fprintf(&b, "note: %s\n", cli.Cell(lack))
	}
	return b.String()
}

// status describes the keys of a zone.
func status(b *strings.Builder, s api.DNSSECStatus) {
	job(b, "looked", s.DNSSECJob)
	for _, k := range s.Keys {
		fmt.Fprintf(b, "  key       %-5d %s %s %s\n", k.Tag, k.Role, cli.Cell(k.Algorithm), k.Phase)
	}
	for _, row := range []struct {
		name string
		list []string
	}{{"DS", s.DS}, {"server", s.Servers}, {"policy", s.Policy}} {
		for _, one := range row.list {
			fmt.Fprintf(b, "  %-9s %s\n", row.name, cli.Cell(one))
		}
	}
}

// roll describes the rollover of a key.
func roll(b *strings.Builder, r api.DNSSECRoll) {
	job(b, "rollover", r.DNSSECJob)
	fmt.Fprintf(b, "  %s       %s -> %s\n", cli.Cell(r.Kind), cli.OrDash(cli.Cell(r.Old)),
		cli.OrDash(cli.Cell(r.New)))
	if r.DS != "" {
		fmt.Fprintf(b, "  DS due    %s\n", cli.Cell(r.DS))
	}
	if r.Finished.IsZero() && r.Step != "" {
		fmt.Fprintf(b, "  now       %s\n", cli.Cell(r.Step))
	}
	if r.Finished.IsZero() && !r.Next.IsZero() {
		fmt.Fprintf(b, "  next look %s\n", cli.Moment(r.Next))
	}
	for _, m := range r.Timeline {
		when := cli.Cell(m.After)
		if !m.At.IsZero() {
			when = cli.Moment(m.At)
		}
		fmt.Fprintf(b, "  policy    %s  %s\n", when, cli.Cell(m.What))
	}
}

// job describes the job that said it.
func job(b *strings.Builder, what string, j api.DNSSECJob) {
	state := string(j.State)
	if j.Outcome != "" {
		state = string(j.Outcome)
	}
	when := j.Finished
	if when.IsZero() {
		when = j.Started
	}
	fmt.Fprintf(b, "  %-9s %s, %s (job %s)\n", what, cli.Moment(when), state, cli.Cell(string(j.ID)))
	if j.Said != "" {
		fmt.Fprintf(b, "            %s\n", cli.Cell(j.Said))
	}
}

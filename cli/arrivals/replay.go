package arrivals

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

func newReplay() *cobra.Command {
	reason, check := "", false
	c := &cobra.Command{
		Use:   "replay EVENT",
		Short: "Send the body of an event again, as a new event",
		Long: `replay stores the body of an event again, under a new id, so that triggers fire again
although they did before. It needs the rights that send needs.

With --check nothing is stored and nothing is done: it says what each trigger in force
would do about the event now, on which hosts, and why not.

Exit codes of --check: 0 some trigger would fire or collect, 1 none would or you may not
replay it, 2 wrong use, 3 the server does not answer.`,
		Example: `  muster event replay 4d0vqk2m8xw1t7n3c5r9y6h0ab --check
  muster event replay 4d0vqk2m8xw1t7n3c5r9y6h0ab --reason 'rules were wrong'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&reason, "reason", "", "`why`, for the log")
	c.Flags().BoolVar(&check, "check", false, "say what would happen, and do nothing")
	c.MarkFlagsMutuallyExclusive("check", "reason")
	cli.CompleteFlagWith(c, "reason", cobra.NoFileCompletions)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		path := "/v1/inbox/" + url.PathEscape(args[0]) + "/replay"
		if check {
			return foresee(ctx, s, path)
		}
		return sent(ctx, s, path, api.OrderRequest{Reason: reason})
	})
}

// foresee prints what a replay would do.
func foresee(ctx context.Context, s *cli.Session, path string) error {
	var got api.EventForeseen
	if err := s.Get(ctx, path, nil, &got); err != nil {
		return err
	}
	if s.JSON {
		got.Refused, got.Firings = cli.Filled(got.Refused), cli.Filled(got.Firings)
		got.Decisions = cli.Filled(got.Decisions)
		if err := s.WriteJSON(got); err != nil {
			return err
		}
	} else if err := s.Write(foreseen(got)); err != nil {
		return err
	}
	if len(got.Refused) == 0 && slices.ContainsFunc(got.Decisions, acts) {
		return nil
	}
	return cli.Exit(cli.ExitNotAll, nil)
}

// acts reports whether a trigger would start something.
func acts(d api.TriggerDecision) bool { return d.Result == "fires" || d.Result == "collects" }

func foreseen(got api.EventForeseen) string {
	var b strings.Builder
	for _, why := range got.Refused {
		fmt.Fprintf(&b, "you cannot replay it: %s\n", cli.Cell(why))
	}
	for _, f := range got.Firings {
		if f.Task != "" {
			fmt.Fprintf(&b, "the event itself has started task %s by trigger %s\n", cli.Cell(f.Task),
				cli.Cell(f.Trigger))
		}
	}
	if len(got.Decisions) == 0 {
		b.WriteString("no trigger is in force: nothing would happen\n")
	}
	b.WriteString(cli.DecisionLines(got.Decisions))
	return b.String()
}

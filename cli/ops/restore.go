package ops

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// NewRestore makes the command restore.
func NewRestore() *cobra.Command {
	var reason string
	var dryRun, nothing, sure bool
	c := &cobra.Command{
		Use:   "restore",
		Short: "Put back windows, schedules and orders that Redis has lost",
		Long: `restore puts back what people have agreed and Redis has lost, for example by a FLUSHALL:
windows with their freezes and approvals, schedules, a halt, pauses and drained hosts.
History keeps a copy of them, two seconds old at most. Nothing starts in any zone before
restore.

If Redis has a later version of a part, that part stays as it is. Schedules continue with
their next tick; missed ticks are not made up for. History keeps no API tokens: make new
ones.

To restore a backup of Redis and SQL see muster backup restore.`,
		Example: `  muster restore --dry-run
  muster restore --reason 'somebody flushed the wrong Redis'
  muster restore --nothing --dry-run
  muster restore --nothing --reason 'it is to begin empty'`,
		Args:              noFile,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would come back, or be given up")
	c.Flags().BoolVar(&nothing, "nothing", false, "continue with what Redis has, and restore nothing")
	c.Flags().BoolVar(&sure, "yes", false, "do not ask")
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var r api.AgreedReport
		if err := s.Get(ctx, "/v1/agreed", nil, &r); err != nil {
			return err
		}
		if dryRun {
			return rehearse(s.Screen, r, nothing)
		}
		if err := cli.NeedReason(reason, "somebody flushed the wrong Redis"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		path := "/v1/agreed/restore"
		if nothing {
			path = "/v1/agreed/forsake"
		}
		if !sure {
			if err := askRestore(s.Screen, r, nothing, bufio.NewReader(c.InOrStdin())); err != nil {
				return err
			}
		}
		if err := s.Order(ctx, path, reason, &r); err != nil {
			return err
		}
		return writeAgreed(s.Screen, r, agreedGrid(r, "came back"))
	})
}

// noFile names the command for somebody who has a backup.
func noFile(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("restore takes no file: to restore a backup: muster backup restore %s", args[0])
}

// rehearse shows what an order would do with each part. With nothing no part comes back.
func rehearse(s *cli.Screen, r api.AgreedReport, nothing bool) error {
	if !nothing {
		return writeAgreed(s, r, agreedGrid(r, "would come back"))
	}
	list := agreedGrid(r, "would be given up for good")
	for i := range r.Parts {
		r.Parts[i].Comes = false // as the answer to the order itself says
	}
	return writeAgreed(s, r, list)
}

// askRestore shows the planned changes, and asks.
func askRestore(s *cli.Screen, r api.AgreedReport, nothing bool, in *bufio.Reader) error {
	for _, p := range r.Parts {
		if p.Comes {
			s.Say("%s: %s, of %s", p.Part, cli.Cell(cli.OrDash(p.Kept)), cli.Moment(p.At))
		}
	}
	question := "put this back?"
	if nothing {
		question = "give this up for good?"
	}
	s.Say("%s [y/N]", question)
	answer, _ := in.ReadString('\n') // an empty input is a no
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return cli.Exit(cli.ExitUsage, errors.New("nothing was done; to answer beforehand: --yes"))
	}
	return nil
}

func writeAgreed(s *cli.Screen, r api.AgreedReport, list cli.Grid) error {
	if !r.Lost.Since.IsZero() {
		s.Say("Redis had lost windows, schedules or orders, noticed %s", cli.Moment(r.Lost.Since))
	}
	return s.List(r, list, "history keeps nothing that was agreed")
}

// agreedGrid lists the parts, with the word about those that Redis has lost.
func agreedGrid(r api.AgreedReport, comes string) cli.Grid {
	list := cli.NewGrid("PART", "HISTORY HAS", "SINCE", "REDIS HAS", "")
	for _, p := range r.Parts {
		does := ""
		if p.Comes {
			does = comes
		}
		since := "-"
		if !p.At.IsZero() {
			since = cli.Moment(p.At)
		}
		list.Add(p.Part, cli.Cell(cli.OrDash(p.Kept)), since, cli.Cell(cli.OrDash(p.Now)), does)
	}
	return list
}

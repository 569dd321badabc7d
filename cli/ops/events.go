package ops

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/watch"
)

func newHistoryEvents() *cobra.Command {
	limit, cursor := 500, ""
	c := &cobra.Command{
		Use:   "events TASK|JOB",
		Short: "List what happened to a task and its jobs, or to one job, also long ago",
		Long: `events lists the events that history keeps about a task and its jobs, or about one job,
the first one first: the submit, each take, each step, each order, each end. muster
events follows events while they happen.`,
		Example: `  muster history events 0wcy7y2fb2
  muster history events 0wcy7y2fb2:fw001 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Tasks,
	}
	c.Flags().IntVar(&limit, "limit", limit, "events of a page, at most 500")
	c.Flags().StringVar(&cursor, "cursor", "", "`place` where the next page begins")
	cli.CompleteFlagWith(c, "cursor", cobra.NoFileCompletions)
	cli.CompleteFlagWith(c, "limit", cobra.NoFileCompletions)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if limit < 1 || limit > api.PageMax {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--limit %d: want 1 to %d", limit, api.PageMax))
		}
		q := url.Values{"of": {args[0]}, "limit": {strconv.Itoa(limit)}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		watch.Banner(ctx, s)
		var page api.PastEvents
		if err := s.Get(ctx, "/v1/history/events", q, &page); err != nil {
			return err
		}
		if s.JSON {
			page.Events = cli.Filled(page.Events)
			return s.WriteJSON(page)
		}
		return showPastEvents(s.Screen, page)
	})
}

func showPastEvents(s *cli.Screen, page api.PastEvents) error {
	if len(page.Events) == 0 {
		s.Say("history has no event of it")
		return nil
	}
	text := ""
	for _, h := range page.Events {
		text += h.At.UTC().Format("2006-01-02 ") + watch.EventLine(h)
	}
	if err := s.Write(text); err != nil {
		return err
	}
	if page.Next != "" {
		s.Say("there are more: the same with --cursor %s", cli.Cell(page.Next))
	}
	return nil
}

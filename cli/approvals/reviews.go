package approvals

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

func newReviews() *cobra.Command {
	closed := false
	c := &cobra.Command{
		Use:   "reviews",
		Short: "List broken glass that nobody else has looked at",
		Long: `reviews lists the tasks that one person ran alone although more people must sign such
work (muster run --break-glass), and which nobody else has looked at yet. muster health
says so, too, until somebody closes the review with muster approvals review.`,
		Example: `  muster approvals reviews
  muster approvals reviews --all -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().BoolVar(&closed, "all", false, "also those that are closed")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		q := url.Values{}
		if closed {
			q.Set("all", "true")
		}
		var l api.ReviewList
		if err := s.Get(ctx, "/v1/reviews", q, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Reviews = cli.Filled(l.Reviews)
			return s.WriteJSON(l)
		}
		g := cli.NewGrid("TASK", "BROKEN BY", "AT", "REASON", "CLOSED BY", "WORDS")
		for _, r := range l.Reviews {
			g.Add(cli.Cell(string(r.Task)), cli.Cell(r.Who), cli.Moment(r.At), cli.Cell(r.Reason),
				cli.OrDash(cli.Cell(r.By)), cli.OrDash(cli.Cell(r.Words)))
		}
		return s.List(l.Reviews, g, "no review is open")
	})
}

func newReview() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "review TASK",
		Short: "Close the review of broken glass, with what you have found",
		Long: `review closes the review of a task that one person ran alone. Look first at what it did:
muster task and muster history events. The person who broke the glass cannot close it,
nor by another of their names. Your words stay in the audit log.`,
		Example:           `  muster approvals review 0wcy7y2fb2 --reason 'the outage was real'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if reason == "" {
			err = errors.Join(err, errors.New("--reason is missing: say what you have looked at, and "+
				"what you found"))
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var did api.Review
		err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/reviews/" +
			url.PathEscape(string(id)), Body: api.ReviewRequest{Words: reason, As: s.As},
			Bound: cli.SubmitTimeout}, &did)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(fmt.Sprintf("the review of task %s is closed\n", cli.Cell(string(did.Task))))
	})
}

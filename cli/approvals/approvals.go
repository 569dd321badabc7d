package approvals

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/jobs"
)

// New makes the command approvals.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:   "approvals",
		Short: "Sign the orders of tasks that wait for it, or refuse them",
		Long: `approvals shows and signs tasks that were submitted with muster run --hold. Such a task
is in the queue, and no job of it runs before enough people have signed its order with
their keys of SSH. The policy of the nodes says how many (docs/TRUST.md). After a day
without enough signatures the task expires.`,
		Example: `  muster approvals ls
  muster approvals show 0wcy7y2fb2
  muster approvals approve 0wcy7y2fb2
  muster approvals refuse 0wcy7y2fb2 --reason 'wrong ruleset'
  muster approvals withdraw 0wcy7y2fb2
  muster approvals reviews`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newShow(), newApprove(), newRefuse(), newWithdraw(), newReviews(),
		newReview())
	return c
}

func newList() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List the tasks that wait for signatures",
		Example: `  muster approvals ls
  muster approvals ls -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.HeldList
		if err := s.Get(ctx, "/v1/approvals", nil, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Approvals = cli.Filled(l.Approvals)
			return s.WriteJSON(l)
		}
		g := cli.NewGrid("TASK", "RUNBOOK", "OPERATOR", ">HOSTS", "SINCE", "UNTIL", "SIGNED", "REASON")
		for _, t := range l.Approvals {
			g.Add(cli.Cell(string(t.Task)), cli.Cell(t.Runbook), cli.Cell(t.Operator),
				strconv.Itoa(t.Hosts), cli.Moment(t.Since), cli.Moment(t.Until),
				cli.OrDash(cli.Cell(strings.Join(t.Signed, ", "))), cli.OrDash(cli.Cell(t.Reason)))
		}
		return s.List(l.Approvals, g, "no task waits for signatures")
	})
}

// pathOf returns the path of a held task.
func pathOf(id jobs.TaskID) string { return "/v1/approvals/" + url.PathEscape(string(id)) }

// Of returns a task that waits for signatures.
func Of(ctx context.Context, c *cli.Client, id jobs.TaskID) (d api.HeldDetail, err error) {
	return d, c.Get(ctx, pathOf(id), nil, &d)
}

// Say says that a task which is not committed waits for signatures, if it does.
func Say(ctx context.Context, s *cli.Session, id jobs.TaskID) {
	d, err := Of(ctx, s.Client, id)
	if err != nil { // it is half submitted, or nobody knows
		return
	}
	s.Say("it waits for signatures until %s%s", cli.Moment(d.Until), missingWords(d.Missing))
	Advise(s.Screen, id)
}

// Advise says what people can do with a task that waits for signatures.
func Advise(s *cli.Screen, id jobs.TaskID) {
	s.Say("look at it with `muster approvals show %s`, and sign it with `muster approvals approve %s`",
		id, id)
}

func missingWords(n *int) string {
	switch {
	case n == nil:
		return ""
	case *n == 0:
		return ": enough people have signed"
	case *n == 1:
		return ": 1 more person must sign"
	}
	return fmt.Sprintf(": %d more people must sign", *n)
}

func newShow() *cobra.Command {
	raw := false
	c := &cobra.Command{
		Use:   "show TASK",
		Short: "Show what a task would do that waits for signatures",
		Long: `show shows the plan of a task as its order has it. With --order it prints the whole
order: JSON with all steps of the runbook, the values and the hashes of the hosts. With
-o json the answer also has the bytes that people sign, in base64.`,
		Example: `  muster approvals show 0wcy7y2fb2
  muster approvals show 0wcy7y2fb2 --order | jq .spec.action.steps`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete,
	}
	c.Flags().BoolVar(&raw, "order", false, "print the whole order, as JSON")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		d, err := Of(ctx, s.Client, id)
		if err != nil {
			return err
		}
		p, err := planOf(d, id)
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.WriteJSON(d)
		case raw:
			return s.Write(cli.EscapeJSON(d.Order) + "\n")
		}
		return s.Write(p.text())
	})
}

func newRefuse() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "refuse TASK",
		Short: "Refuse a task that waits for signatures: it never runs",
		Long: `refuse cancels a task that waits for signatures. Whoever ordered it can withdraw it in
this way; others need the right to approve it, and a reason.`,
		Example:           `  muster approvals refuse 0wcy7y2fb2 --reason 'wrong ruleset'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		id, err := cli.TaskArg(args[0])
		if err != nil {
			return err
		}
		q := url.Values{}
		if reason != "" {
			q.Set("reason", reason)
		}
		var did jobs.Cancel
		err = s.Do(ctx, cli.Call{Method: http.MethodDelete, Path: pathOf(id), Query: q,
			Bound: cli.SubmitTimeout}, &did)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(did)
		}
		return s.Write(fmt.Sprintf("task %s is refused: %s ended before they began\n",
			cli.Cell(string(did.Task)), cli.Count(did.Ended, "job")))
	})
}

// complete offers the tasks that wait for signatures.
func complete(c *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cli.NoFiles
	}
	l, _ := cli.AskServer(c, func(ctx context.Context, cl *cli.Client) (l api.HeldList, err error) {
		return l, cl.Get(ctx, "/v1/approvals", nil, &l)
	})
	var words []cobra.Completion
	for _, t := range l.Approvals {
		words = append(words, cobra.CompletionWithDesc(cli.Cell(string(t.Task)),
			fmt.Sprintf("%s on %s for %s", cli.Cell(t.Runbook), cli.Count(t.Hosts, "host"),
				cli.Cell(t.Operator))))
	}
	return words, cli.NoFiles
}

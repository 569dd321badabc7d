package approvals

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

func newWithdraw() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "withdraw TASK",
		Short: "Take back your signature, or the task that you have ordered",
		Long: `withdraw takes your signature off a task that still waits. If you have ordered the task
yourself, it takes back the task: it never runs. A task that enough people have signed
runs; stop it with muster cancel.`,
		Example: `  muster approvals withdraw 0wcy7y2fb2
  muster approvals withdraw 0wcy7y2fb2 --reason 'I had looked at another ruleset'`,
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
		var did api.Withdrawn
		err = s.Do(ctx, cli.Call{Method: http.MethodDelete, Path: pathOf(id) + "/signature", Query: q,
			Bound: cli.SubmitTimeout}, &did)
		switch {
		case err != nil:
			return err
		case s.JSON:
			return s.WriteJSON(did)
		case did.Whole:
			return s.Write(fmt.Sprintf("task %s is withdrawn: %s ended before they began\n",
				cli.Cell(string(did.Task)), cli.Count(did.Ended, "job")))
		}
		return s.Write(fmt.Sprintf("your signature under task %s is withdrawn%s\n",
			cli.Cell(string(did.Task)), missingWords(did.Missing)))
	})
}

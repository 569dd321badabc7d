package standing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/internal/files"
	"muster/triggers"
)

// eventMax bounds the body of an event.
const eventMax = 1 << 20 // bytes

func newTest() *cobra.Command {
	var t api.TriggerTest
	c := &cobra.Command{
		Use:   "test EVENT.json",
		Short: "Say what an event would start, and why not",
		Long: `test asks what each trigger would do now about an event whose body is in a file (- reads
standard input). It says each condition that does not hold, and for a trigger that would
fire the runbook, the values and the hosts, with the rights of that trigger. Nothing is
done.

Exit codes: 0 some trigger would fire or collect, 1 none would, 2 wrong use, 3 the server
does not answer.`,
		Example: `  muster trigger test alert.json --source alertmanager --kind firing
  muster trigger test push.json --source rules --kind push --customer acme
  muster trigger test push.json --source rules --trigger rules-check -o json`,
		Args: cobra.ExactArgs(1),
	}
	c.Flags().StringVar(&t.Source, "source", "", "the `source` that the event comes from (needed)")
	c.Flags().StringVar(&t.Kind, "kind", "", "the `kind` of the event")
	c.Flags().StringVar(&t.Customer, "customer", "", "the `customer` of the event")
	c.Flags().StringVar(&t.Trigger, "trigger", "", "only this `trigger`")
	for _, name := range []string{"source", "kind", "customer", "trigger"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if t.Source == "" {
			return cli.Exit(cli.ExitUsage, errors.New("--source is missing: want the name of the source "+
				"that such events come from, as triggers name it"))
		}
		body, err := files.ReadGiven(ctx, args[0], eventMax)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		if !json.Valid(body) {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("%s: it is not JSON: want the body of an event",
				args[0]))
		}
		t.Body = body
		var got api.TriggerTested
		err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/triggers/test", Body: t}, &got)
		if err != nil {
			return err
		}
		if err := write(s, got); err != nil {
			return err
		}
		for _, d := range got.Decisions {
			if d.Result == string(triggers.Fires) || d.Result == string(triggers.Collects) {
				return nil
			}
		}
		return cli.Exit(cli.ExitNotAll, nil)
	})
}

func write(s *cli.Session, got api.TriggerTested) error {
	if s.JSON {
		got.Decisions = cli.Filled(got.Decisions)
		return s.WriteJSON(got)
	}
	if len(got.Decisions) == 0 {
		return s.Write("there are no triggers\n")
	}
	return s.Write(cli.DecisionLines(got.Decisions))
}

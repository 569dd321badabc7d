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
	"muster/fleet"
	"muster/internal/files"
	"muster/triggers"
)

// eventMax bounds the body of an event, and fileMax the file of triggers.
const (
	eventMax = 1 << 20 // bytes
	fileMax  = 1 << 20
)

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

// found holds the findings of check for programs.
type found struct {
	Triggers int     `json:"triggers"`
	Mistakes []place `json:"mistakes"`
}

// place is a mistake with its place.
type place struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

func newCheck() *cobra.Command {
	output := ""
	c := &cobra.Command{
		Use:   "check FILE",
		Short: "Report the mistakes in a file of triggers",
		Long: `check lists every mistake in a file of triggers with its line. It asks no server, so it
does not know the runbooks; a server checks their names and arguments, too.

Exit codes: 0 there are no mistakes, 1 there are, 2 wrong use, or a file cannot be read.`,
		Example: "  muster trigger check triggers.yaml\n  muster trigger check triggers.yaml -o json",
		Args:    cobra.ExactArgs(1),
	}
	c.Flags().StringVarP(&output, "output", "o", cli.OutputTable, "table or json")
	cli.CompleteFlag(c, "output", cli.OutputTable, cli.OutputJSON)
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := cli.CheckOutput(output); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return check(c, args[0], output == cli.OutputJSON)
	}
	return c
}

func check(c *cobra.Command, path string, json bool) error {
	data, err := files.ReadGiven(c.Context(), path, fileMax)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	f := found{Mistakes: []place{}}
	set, err := triggers.Parse(fleet.Source{Name: path, Data: data})
	var wrong fleet.Mistakes
	if err != nil && !errors.As(err, &wrong) {
		return cli.Exit(cli.ExitUsage, err)
	}
	for _, m := range wrong {
		f.Mistakes = append(f.Mistakes, place(m))
	}
	f.Triggers = len(set.All())
	switch {
	case json:
		err = cli.PrintJSON(c.OutOrStdout(), f)
	case len(wrong) > 0:
		err = wrong
	default:
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: no mistakes\n", cli.Count(f.Triggers, "trigger"))
	}
	if err != nil || len(wrong) > 0 {
		return cli.Exit(cli.ExitNotAll, err)
	}
	return nil
}

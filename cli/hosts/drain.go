package hosts

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
)

func newHostDrain() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "drain HOST|SELECTOR",
		Short: "Drain hosts: selectors leave them out from now on",
		Long: `drain lets selectors leave hosts out: a new task or a retry does not get them, and says
so. Only a selector that mentions drained picks them, such as '{drained}&fw001'. Jobs
that were submitted before continue to their end; the answer names them, and muster
cancel ends them. A host that is drained already stays so, with the earlier reason.

muster hosts undrain ends it.`,
		Example: `  muster hosts drain fw001 --reason 'new disk'
  muster hosts drain 'group=acme-edge' --reason 'moves to another rack'
  muster hosts ls '{drained}'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		return turnHosts(ctx, s, "drain", args, reason)
	})
}

func newHostUndrain() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "undrain HOST|SELECTOR",
		Short: "Let selectors pick drained hosts again",
		Example: `  muster hosts undrain fw001 --reason 'the disk is in'
  muster hosts undrain all`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	cli.AddReason(c, &reason)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		return turnHosts(ctx, s, "undrain", args, reason)
	})
}

func turnHosts(ctx context.Context, s *cli.Session, verb string, args []string,
	reason string) error {
	on, err := s.SelectorArg(ctx, args, cli.OrSayAll)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	var did api.DrainAnswer
	err = s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/hosts/" + verb,
		Bound: cli.SubmitTimeout,
		Body: api.DrainRequest{On: on,
			OrderRequest: api.OrderRequest{Reason: reason, As: s.As}}}, &did)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.WriteJSON(did)
	}
	return s.Write(drainedText(doneWord(verb), did))
}

// doneWord says what an order has done to hosts.
func doneWord(verb string) string {
	switch verb {
	case "quarantine":
		return inQuarantine
	case "unquarantine":
		return "released"
	}
	return verb + "ed"
}

const inQuarantine = "put into quarantine"

// drainedText describes the result of an order about hosts.
func drainedText(done string, d api.DrainAnswer) string {
	var lines []string
	if d.Count > 0 {
		lines = append(lines, fmt.Sprintf("%s %s: %s", cli.Count(d.Count, "host"), done,
			cli.Cell(d.Changed)))
	}
	switch {
	case d.Already == "":
	case done == "drained":
		lines = append(lines, "drained already: "+cli.Cell(d.Already))
	case done == inQuarantine:
		lines = append(lines, "in quarantine already: "+cli.Cell(d.Already))
	case done == "released":
		lines = append(lines, "not in quarantine: "+cli.Cell(d.Already))
	default:
		lines = append(lines, "not drained: "+cli.Cell(d.Already))
	}
	if d.Labelled != "" && done == "undrained" {
		lines = append(lines, "still drained by a label of the inventory, take it out there: "+
			cli.Cell(d.Labelled))
	}
	if len(d.Open) > 0 {
		lines = append(lines, fmt.Sprintf("%s of earlier tasks: %s; `muster cancel JOB` ends one",
			haveWord(len(d.Open)), openJobs(d.Open)))
	}
	return strings.Join(lines, "\n") + "\n"
}

// haveWord returns the verb for a number of jobs that continue.
func haveWord(n int) string {
	if n == 1 {
		return "1 job continues"
	}
	return fmt.Sprintf("%d jobs continue", n)
}

package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
)

func newHostDrain() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "drain HOST|SELECTOR",
		Short: "Leave hosts alone: no selector picks them any more",
		Long: `drain lets selectors leave hosts out: a new task or a retry does not get them, and says
so. Only a selector that mentions drained picks them, such as '{drained}&fw001'. What was
submitted before goes on to its end; the answer names these jobs, and muster cancel
ends them. A host that is drained already stays so, with the earlier reason.

muster hosts undrain ends it.`,
		Example: `  muster hosts drain fw001 --reason 'new disk'
  muster hosts drain 'group=acme-edge' --reason 'moves to another rack'
  muster hosts ls '{drained}'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeHosts,
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		return s.turnHosts(ctx, "drain", args, reason)
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
		ValidArgsFunction: completeHosts,
	}
	addReason(c, &reason)
	return clientCommand(c, func(ctx context.Context, s *session, args []string) error {
		return s.turnHosts(ctx, "undrain", args, reason)
	})
}

func (s *session) turnHosts(ctx context.Context, verb string, args []string, reason string) error {
	on, err := s.selectorArg(ctx, args, orSayAll)
	if err != nil {
		return exit(exitUsage, err)
	}
	var did api.DrainAnswer
	err = s.do(ctx, call{method: http.MethodPost, path: "/v1/hosts/" + verb, bound: submitTimeout,
		body: api.DrainRequest{On: on,
			OrderRequest: api.OrderRequest{Reason: reason, As: s.as}}}, &did)
	if err != nil {
		return err
	}
	if s.json {
		return s.writeJSON(did)
	}
	return s.write(drainedText(verb+"ed", did))
}

// drainedText tells what a drain or undrain did.
func drainedText(done string, d api.DrainAnswer) string {
	var lines []string
	if d.Count > 0 {
		lines = append(lines, fmt.Sprintf("%s %s: %s", count(d.Count, "host"), done, cell(d.Changed)))
	}
	switch {
	case d.Already == "":
	case done == "drained":
		lines = append(lines, "drained already: "+cell(d.Already))
	default:
		lines = append(lines, "not drained: "+cell(d.Already))
	}
	if d.Labelled != "" && done == "undrained" {
		lines = append(lines, "still drained by a label of the inventory, take it out there: "+
			cell(d.Labelled))
	}
	if len(d.Open) > 0 {
		lines = append(lines, fmt.Sprintf("%s of earlier tasks: %s; `muster cancel JOB` ends one",
			haveWord(len(d.Open)), openJobs(d.Open)))
	}
	return strings.Join(lines, "\n") + "\n"
}

// haveWord counts jobs that go on.
func haveWord(n int) string {
	if n == 1 {
		return "1 job goes on"
	}
	return fmt.Sprintf("%d jobs go on", n)
}

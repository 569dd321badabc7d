package books

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
)

func newRunbooksShow() *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Show a runbook: its arguments, its steps, what it may do",
		Example: `  muster runbooks show apt-upgrade
  muster runbooks show firmware --raw > firmware.yaml
  muster runbooks show exec -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Runbooks,
	}
	c.Flags().BoolVar(&raw, "raw", false, "print the YAML that it is written in, and nothing else")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("%w: want a runbook; `muster runbooks` lists them",
				err))
		}
		var r api.RunbookDetail
		if err := s.Get(ctx, "/v1/runbooks/"+url.PathEscape(args[0]), nil, &r); err != nil {
			return err
		}
		switch {
		case raw && s.JSON:
			return cli.Exit(cli.ExitUsage, fmt.Errorf("--raw is YAML: leave -o json out"))
		case raw && s.OutTerm:
			return s.Write(lines(r.Source))
		case raw:
			return s.Write(r.Source)
		case s.JSON:
			return s.WriteJSON(r)
		}
		return s.Write(runbookText(r, s.TableWidth(), !s.Headless))
	})
}

// lines makes a text harmless on a terminal, line by line.
func lines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString(line[:indent] + cli.Cell(line[indent:]) + "\n")
	}
	return b.String()
}

// runbookText describes a runbook for people.
func runbookText(r api.RunbookDetail, width int, headings bool) string {
	var may []string
	if r.Disruptive {
		may = append(may, "disruptive")
	}
	if r.Repeatable {
		may = append(may, "repeatable")
	}
	window := "not needed"
	if r.Window {
		window = "required"
		if r.Reserve > 0 {
			window += ", with " + secondsText(r.Reserve) + " kept for going back"
		}
	}
	text := cli.Details([2]string{"runbook", cli.Cell(r.Name)}, [2]string{"version",
		cli.Cell(r.Version)},
		[2]string{"sha256", cli.Cell(r.Hash)},
		[2]string{"does", cli.Cell(strings.Join(strings.Fields(r.Description), " "))},
		[2]string{"kind", strings.Join(may, ", ")}, [2]string{"window", window},
		[2]string{"timeout", secondsText(r.Timeout) + " an attempt"},
		[2]string{"takes", secondsText(r.Expect)}, [2]string{"needs", cli.Cell(strings.Join(r.Needs,
			", "))})
	if len(r.Arguments) > 0 {
		g := cli.NewGrid("ARGUMENT", "TYPE", "DEFAULT", "MUST BE", "DESCRIPTION")
		for _, a := range r.Arguments {
			def := "required"
			if !a.Required {
				def = cmp.Or(cli.Cell(a.Default), "''")
			}
			g.Add(cli.Cell(a.Name), cli.Cell(a.Type), def, cli.OrDash(ruleText(a.ArgRules)),
				cli.Cell(a.Description))
		}
		text += "\n" + g.Render(width, headings)
	}
	g := cli.NewGrid("STEP", "KIND", ">TIMEOUT", "MAY", "WHEN", "SAVES", "IF IT FAILS")
	for _, step := range r.Steps {
		name := cli.Cell(step.Name)
		if step.Rescue {
			name = "(" + name + ")"
		}
		g.Add(name, cli.Cell(step.Kind), secondsText(step.Timeout), cli.OrDash(stepWords(step)),
			cli.OrDash(cli.Cell(strings.Join(step.When, " and "))), cli.OrDash(cli.Cell(strings.Join(
				step.Saves, ", "))),
			cli.OrDash(cli.Cell(strings.Join(step.OnFail, ", "))))
	}
	return text + "\n" + g.Render(width, headings)
}

// stepWords describes a step besides its kind.
func stepWords(s api.RunbookStep) string {
	var words []string
	if s.Disruptive {
		words = append(words, "disturb")
	}
	if s.Repeatable {
		words = append(words, "run twice")
	}
	if s.Dry != "" {
		words = append(words, cli.Cell(s.Dry))
	}
	return strings.Join(words, ", ")
}

// ruleText describes the allowed values.
func ruleText(r api.ArgRules) string {
	var words []string
	if len(r.Values) > 0 {
		words = append(words, strings.Join(r.Values, "|"))
	}
	if r.Pattern != "" {
		words = append(words, "like "+r.Pattern)
	}
	if r.MaxLength > 0 {
		words = append(words, fmt.Sprintf("at most %d characters", r.MaxLength))
	}
	if r.Min != nil {
		words = append(words, fmt.Sprintf("%d or more", *r.Min))
	}
	if r.Max != nil {
		words = append(words, fmt.Sprintf("%d or less", *r.Max))
	}
	return cli.Cell(strings.Join(words, ", "))
}

// secondsText returns a time in seconds for people; empty: none.
func secondsText(n float64) string {
	if n == 0 {
		return ""
	}
	d := cli.Seconds(n).String()
	if rest, ok := strings.CutSuffix(d, "m0s"); ok {
		d = rest + "m"
	}
	if rest, ok := strings.CutSuffix(d, "h0m"); ok {
		d = rest + "h"
	}
	return d
}

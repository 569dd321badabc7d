package ops

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/fleet"
	"muster/jobs"
)

func newPauseNode() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:   "pause NODE",
		Short: "Let a node take nothing until it is resumed",
		Long: `pause lets a node take no jobs. Jobs in hand continue to their end, and other nodes
of its zones take the next ones. The order holds also when the master starts anew.
muster nodes shows who gave it, and why.`,
		Example: `  muster nodes pause node3 --reason 'new memory at 14:00'`,
	}
	cli.AddReason(c, &reason)
	return nodeOrder(c, func(ctx context.Context, s *cli.Session, node string) error {
		if strings.TrimSpace(reason) == "" {
			return cli.Exit(cli.ExitUsage, errors.New("--reason is missing: say why the node must take "+
				"nothing, such as --reason 'new memory at 14:00'"))
		}
		return turnNode(ctx, s, node, "pause", reason)
	})
}

func newResumeNode() *cobra.Command {
	reason := ""
	c := &cobra.Command{
		Use:     "resume NODE",
		Short:   "Let a paused node take jobs again",
		Long:    `resume ends a pause. The node takes jobs again unless its machine lacks something.`,
		Example: `  muster nodes resume node3 --reason 'the memory is in'`,
	}
	cli.AddReason(c, &reason)
	return nodeOrder(c, func(ctx context.Context, s *cli.Session, node string) error {
		return turnNode(ctx, s, node, "resume", reason)
	})
}

// nodeOrder gives a command the name of a node.
func nodeOrder(c *cobra.Command,
	do func(ctx context.Context, s *cli.Session, node string) error) *cobra.Command {
	c.Args = cobra.ExactArgs(1)
	c.ValidArgsFunction = cobra.NoFileCompletions
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("NODE: %w", err))
		}
		return do(ctx, s, args[0])
	})
}

func turnNode(ctx context.Context, s *cli.Session, node, verb, reason string) error {
	var did api.NodeOrdered
	path := "/v1/nodes/" + url.PathEscape(node) + "/" + verb
	if err := s.Order(ctx, path, reason, &did); err != nil {
		return err
	}
	if s.JSON {
		return s.WriteJSON(did)
	}
	return s.Write(nodeOrdered(did))
}

// nodeOrdered describes the answer to an order about a node.
func nodeOrdered(did api.NodeOrdered) string {
	name := cli.Cell(did.Node)
	text := fmt.Sprintf("node %s takes jobs again\n", name)
	switch {
	case did.Already:
		return fmt.Sprintf("node %s stays as it was, %s%s\n", name, cli.Cell(did.Note),
			cli.ChangesNothing)
	case did.Paused:
		text = fmt.Sprintf("node %s takes nothing more; its jobs in hand continue\n", name)
	}
	if !did.Lives {
		text += "it is gone: the order holds when it comes back\n"
	}
	return text
}

// stateOf returns the state of a node in one word: what it does of itself, or what was ordered.
func stateOf(n jobs.Node) string {
	switch {
	case n.State != "running":
		return n.State
	case n.Paused != nil:
		return "paused"
	case n.Governor != nil && n.Governor.Starved:
		return "starved"
	}
	return n.State
}

// held says why a node takes nothing, or less than its configuration allows.
func held(n jobs.Node) []string {
	var notes []string
	if n.Paused != nil {
		notes = append(notes, n.Paused.Note)
	}
	if n.Governor != nil && n.State != jobs.NodeGone {
		notes = append(notes, n.Governor.Why...)
	}
	if len(n.Standby) > 0 {
		notes = append(notes, "it stands in for the nodes of "+strings.Join(n.Standby, ", "))
	}
	return notes
}

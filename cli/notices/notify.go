package notices

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
)

// New makes the command notify.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:   "notify",
		Short: "Show who was told what happened, and try a receiver",
		Long: `Servers tell people and programs what happened, by the rules in /etc/muster/notify.yaml:
docs/NOTIFY.md. Each message to each receiver is kept with its tries and the last error
until it was delivered or given up, and for 14 days after that.`,
		Example: `  muster notify ls --state waiting
  muster notify show msg_0d54a1f6a1f5e2b0c7d9e8f7a6b5c4d3
  muster notify test noc
  muster notify check notify.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newShow(), newReceivers(), newTest(), newCheck())
	return c
}

func states() []string { return []string{"waiting", "delivered", "gone", "expired"} }

// pageMax is the most messages that an answer has.
const pageMax = 500

func newList() *cobra.Command {
	state, receiver, before, limit := "", "", "", 50
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List messages, the newest first",
		Long: `ls lists messages, the newest first, each with its state: waiting (it is tried again),
delivered, gone (the receiver wants no more), expired (it was given up). Whoever may see
some hosts only sees the messages that concern only tasks of theirs.`,
		Example: `  muster notify ls
  muster notify ls --state waiting --receiver noc
  muster notify ls -o json | jq -r '.messages[] | select(.error != null).id'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&state, "state", "", "only in this `state`: "+strings.Join(states(), ", "))
	c.Flags().StringVar(&receiver, "receiver", "", "only to this `receiver`")
	c.Flags().StringVar(&before, "before", "", "only messages older than this `message`")
	c.Flags().IntVar(&limit, "limit", limit, "messages of a page, at most 500")
	cli.CompleteFlag(c, "state", states()...)
	for _, name := range []string{"receiver", "before", "limit"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var errs []error
		if state != "" && !slices.Contains(states(), state) {
			errs = append(errs, fmt.Errorf("--state %q: want one of %s", state,
				strings.Join(states(), ", ")))
		}
		if limit < 1 || limit > pageMax {
			errs = append(errs, fmt.Errorf("--limit %d: want 1 to %d", limit, pageMax))
		}
		if err := errors.Join(errs...); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		q := url.Values{"limit": {strconv.Itoa(limit)}}
		for name, value := range map[string]string{"state": state, "receiver": receiver,
			"before": before} {
			if value != "" {
				q.Set(name, value)
			}
		}
		var l api.MessageList
		if err := s.Get(ctx, "/v1/notify/messages", q, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Messages = cli.Filled(l.Messages)
			return s.WriteJSON(l)
		}
		g := cli.NewGrid("MESSAGE", "CREATED", "RECEIVER", "STATE", ">TRIES", "TITLE", "ERROR")
		for _, m := range l.Messages {
			g.Add(cli.Cell(m.ID), cli.Moment(m.Created), cli.Cell(m.Receiver), cli.Cell(m.State),
				strconv.Itoa(m.Tries), cli.Fit(cli.Cell(m.Title), lineColumns),
				cli.OrDash(cli.Fit(cli.Cell(m.Error), lineColumns)))
		}
		if err := s.List(l.Messages, g, "there are no such messages"); err != nil {
			return err
		}
		if l.Next != "" {
			s.Say("there are more: the same with --before %s", cli.Cell(l.Next))
		}
		return nil
	})
}

// lineColumns bounds a text of a table.
const lineColumns = 60

func newShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "show MESSAGE",
		Short: "Show one message with its text, its tries and the last error",
		Long: `show shows a message: what it says, when it is or was tried, and the last error. With
-o json it also has the body as a webhook gets it.`,
		Example: `  muster notify show msg_0d54a1f6a1f5e2b0c7d9e8f7a6b5c4d3
  muster notify show msg_0d54a1f6a1f5e2b0c7d9e8f7a6b5c4d3 -o json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		m, err := get(ctx, s, args[0])
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(m)
		}
		return s.Write(cli.Details(details(m)...))
	})
}

func get(ctx context.Context, s *cli.Session, id string) (api.Message, error) {
	var m api.Message
	err := s.Get(ctx, "/v1/notify/messages/"+url.PathEscape(id), nil, &m)
	return m, err
}

func details(m api.Message) [][2]string {
	out := [][2]string{{"message", cli.Cell(m.ID)}, {"receiver", cli.Cell(m.Receiver)},
		{"rule", cli.Cell(m.Rule)}, {"state", cli.Cell(m.State)},
		{"created", cli.Moment(m.Created)}, {"tries", strconv.Itoa(m.Tries)},
		{"last try", cli.Moment(m.At)}, {"next try", cli.Moment(m.Next)},
		{"error", cli.Cell(m.Error)}, {"title", cli.Cell(m.Title)}}
	body, _ := m.Body.(map[string]any)
	text, _ := body["text"].(string)
	for i, line := range strings.Split(text, "\n") {
		name := ""
		if i == 0 {
			name = "text"
		}
		out = append(out, [2]string{name, cli.Cell(line)})
	}
	return out
}

func newReceivers() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "receivers",
		Short: "List the receivers, and how many messages wait for each",
		Long: `receivers lists who is told, by which rules, and how many messages wait for each or were
given up. Of a URL it shows the host only: the rest may be a secret.`,
		Example:           "  muster notify receivers\n  muster notify receivers -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.NotifyReceivers
		if err := s.Get(ctx, "/v1/notify/receivers", nil, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Receivers = cli.Filled(l.Receivers)
			return s.WriteJSON(l)
		}
		if l.Complaint != "" {
			s.Say("the file of rules has mistakes, and is not in force: %s", cli.Cell(l.Complaint))
		}
		g := cli.NewGrid("RECEIVER", "KIND", "PLACE", ">WAITING", "SINCE", ">DELIVERED", ">GIVEN UP",
			"RULES")
		for _, r := range l.Receivers {
			g.Add(cli.Cell(r.Name), cli.Cell(r.Kind), cli.Cell(r.Place),
				strconv.Itoa(r.Counts["waiting"]), cli.OrDash(cli.Moment(r.Waiting)),
				strconv.Itoa(r.Counts["delivered"]),
				strconv.Itoa(r.Counts["gone"]+r.Counts["expired"]),
				cli.OrDash(cli.Cell(strings.Join(r.Rules, ","))))
		}
		return s.List(l.Receivers, g, "nobody is told anything: docs/NOTIFY.md says how")
	})
}

// The time for which test waits, and that between two looks.
const (
	testWait  = 45 * time.Second
	testEvery = 250 * time.Millisecond
)

func newTest() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "test RECEIVER",
		Short: "Send a marked message to a receiver, and wait for its first try",
		Long: `test sends a message that says that it is a test, on the way of all others, and waits
until it was tried.

Exit codes: 0 it was delivered, 1 it was not, 3 the server does not answer.`,
		Example:           "  muster notify test noc\n  muster notify test noc -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		var m api.Message
		err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/notify/receivers/" +
			url.PathEscape(args[0]) + "/test", Bound: cli.CallTimeout}, &m)
		if err != nil {
			return err
		}
		if m, err = awaitTry(ctx, s, m); err != nil {
			return err
		}
		if s.JSON {
			if err := s.WriteJSON(m); err != nil {
				return err
			}
		} else if m.State == "delivered" {
			return s.Write(fmt.Sprintf("%s has taken the message %s\n", cli.Cell(m.Receiver),
				cli.Cell(m.ID)))
		}
		switch {
		case m.State == "delivered":
			return nil
		case m.Tries == 0:
			return cli.Exit(cli.ExitNotAll, fmt.Errorf("no server has tried it within %s: `muster "+
				"notify show %s` shows when one does", testWait, cli.Cell(m.ID)))
		}
		return cli.Exit(cli.ExitNotAll, fmt.Errorf("it was not delivered: %s", cli.Cell(m.Error)))
	})
}

// awaitTry asks for a message until it was tried.
func awaitTry(ctx context.Context, s *cli.Session, m api.Message) (api.Message, error) {
	ticks := time.NewTicker(testEvery)
	defer ticks.Stop()
	for until := time.Now().Add(testWait); m.Tries == 0 && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return m, ctx.Err()
		case <-ticks.C:
		}
		next, err := get(ctx, s, m.ID)
		if err != nil {
			return m, err
		}
		m = next
	}
	return m, nil
}

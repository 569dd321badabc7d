package arrivals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/internal/files"
)

// New makes the command event.
func New() *cobra.Command {
	c := &cobra.Command{
		Use:   "event",
		Short: "Show what happened elsewhere, and send an event by hand",
		Long: `Programs elsewhere send events to a server, which stores each before it answers and works
on it later: docs/EVENTS.md. Events are kept for 7 days after their end, at most 1,000 of
a source. What happens inside of muster is shown by muster events.`,
		Example: `  muster event ls --source rules
  muster event show 4d0vqk2m8xw1t7n3c5r9y6h0ab
  muster event send rules push.json
  muster event sources`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newShow(), newSend(), newReplay(), newSources())
	return c
}

func states() []string { return []string{"waiting", "done", "stuck", "doubted"} }

// pageMax is the most events that an answer has.
const pageMax = 500

// bodyMax bounds the body of an event.
const bodyMax = 1 << 20 // bytes

func newList() *cobra.Command {
	texts := map[string]*string{}
	before, limit := int64(0), 50
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List events from elsewhere, the newest first",
		Long: `ls lists events, each with its state: waiting, done, stuck (work on it failed 20 times),
doubted (no server has vouched for what Redis has of it). Whoever may see some hosts only
sees the events of customers all of whose hosts these are.`,
		Example: `  muster event ls
  muster event ls --customer acme --state stuck
  muster event ls -o json | jq -r '.events[].work.firings[].task'`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	for name, usage := range map[string]string{"source": "only of this `source`",
		"customer": "only of this `customer`", "kind": "only of this `kind`",
		"state": "only in this `state`: " + strings.Join(states(), ", ")} {
		texts[name] = c.Flags().String(name, "", usage)
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	c.Flags().Int64Var(&before, "before", 0, "only events before this `number`")
	c.Flags().IntVar(&limit, "limit", limit, "events of a page, at most 500")
	for _, name := range []string{"before", "limit"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		var errs []error
		if state := *texts["state"]; state != "" && !slices.Contains(states(), state) {
			errs = append(errs, fmt.Errorf("--state %q: want one of %s", state,
				strings.Join(states(), ", ")))
		}
		if limit < 1 || limit > pageMax {
			errs = append(errs, fmt.Errorf("--limit %d: want 1 to %d", limit, pageMax))
		}
		if before < 0 {
			errs = append(errs, fmt.Errorf("--before %d: want the number of an event", before))
		}
		if err := errors.Join(errs...); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		q := url.Values{"limit": {strconv.Itoa(limit)}}
		if before > 0 {
			q.Set("before", strconv.FormatInt(before, 10))
		}
		for name, text := range texts {
			if *text != "" {
				q.Set(name, *text)
			}
		}
		return list(ctx, s, q)
	})
}

func list(ctx context.Context, s *cli.Session, q url.Values) error {
	var l api.EventList
	if err := s.Get(ctx, "/v1/inbox", q, &l); err != nil {
		return err
	}
	if s.JSON {
		l.Events = cli.Filled(l.Events)
		return s.WriteJSON(l)
	}
	g := cli.NewGrid(">NUMBER", "EVENT", "AT", "SOURCE", "KIND", "CUSTOMER", "STATE", "TASKS")
	for _, e := range l.Events {
		g.Add(strconv.FormatInt(e.Seq, 10), cli.Cell(e.Event), cli.Moment(e.At), cli.Cell(e.Source),
			cli.OrDash(cli.Cell(e.Kind)), cli.OrDash(cli.Cell(e.Customer)), cli.Cell(e.State),
			cli.OrDash(cli.Cell(strings.Join(tasks(e), ","))))
	}
	if err := s.List(l.Events, g, "there are no such events"); err != nil {
		return err
	}
	if l.Next != 0 {
		s.Say("there are more: the same with --before %d", l.Next)
	}
	return nil
}

func tasks(e api.Event) (list []string) {
	for _, f := range e.Work.Firings {
		if f.Task != "" {
			list = append(list, f.Task)
		}
	}
	return list
}

func newShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "show EVENT",
		Short: "Show one event, and what was done about it",
		Long: `show shows an event: where it came from, its body as its sender wrote it, what each
trigger did about it, and how the tasks ended that it started: their outcomes, and what
their hosts said, folded. The other way, muster task names the event as the reason of
its task.`,
		Example: `  muster event show 4d0vqk2m8xw1t7n3c5r9y6h0ab
  muster event show 4d0vqk2m8xw1t7n3c5r9y6h0ab -o json | jq .body
  muster event show 4d0vqk2m8xw1t7n3c5r9y6h0ab -o json | jq '.answers[].summary.groups'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		var e api.Event
		if err := s.Get(ctx, "/v1/inbox/"+url.PathEscape(args[0]), nil, &e); err != nil {
			return err
		}
		list, more := answers(ctx, s, e)
		if s.JSON {
			return s.WriteJSON(struct {
				api.Event
				Answers []answer `json:"answers"`
				More    int      `json:"answers_left_out"` // tasks whose answers are not read
			}{e, cli.Filled(list), more})
		}
		return s.Write(cli.Details(details(e)...) + answersText(s, list, more))
	})
}

func details(e api.Event) [][2]string {
	out := [][2]string{{"event", cli.Cell(e.Event)}, {"number", strconv.FormatInt(e.Seq, 10)},
		{"source", cli.Cell(e.Source)}, {"kind", cli.Cell(e.Kind)},
		{"customer", cli.OrDash(cli.Cell(e.Customer))}, {"class", cli.Cell(e.Class)},
		{"at", cli.Moment(e.At)}, {"state", cli.Cell(e.State)}, {"ended", cli.Moment(e.Work.Ended)},
		{"failed tries", strconv.Itoa(e.Work.Tries)}, {"error", cli.Cell(e.Work.Error)},
		{"sent by", cli.Cell(e.By)}, {"repeats", cli.Cell(e.Again)}, {"doubt", cli.Cell(e.Doubt)}}
	for _, f := range e.Work.Firings {
		out = append(out, [2]string{"trigger " + cli.Cell(f.Trigger),
			cli.Cell(strings.TrimSpace(f.Task + " " + f.Why))})
	}
	return append(out, [2]string{"body", cli.Cell(string(e.Body))})
}

func newSend() *cobra.Command {
	var b api.EventSend
	c := &cobra.Command{
		Use:   "send [SOURCE] FILE",
		Short: "Send an event by hand; - reads standard input",
		Long: `send stores the JSON of a file as an event. With a SOURCE it is worked on as if that
source had sent it, and belongs to the customer that the source names; without one it is
of the source hand. Whoever sends one needs the right to order on all hosts of its
customer, and without a customer on the whole house.`,
		Example: `  muster event send rules push.json
  muster event send --kind bundle --customer acme bundle.json
  echo '{"host": "fw001"}' | muster event send --kind look -`,
		Args: cobra.RangeArgs(1, 2),
	}
	c.Flags().StringVar(&b.Kind, "kind", "", "`kind` of the event, such as push")
	c.Flags().StringVar(&b.Customer, "customer", "", "`customer` whose event it is")
	for _, name := range []string{"kind", "customer"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		file := args[len(args)-1]
		if len(args) == 2 {
			b.Source = args[0]
		}
		data, err := files.ReadGiven(ctx, file, bodyMax)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		if !json.Valid(data) {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("%s is not JSON: an event is one value in JSON",
				file))
		}
		b.Body = data
		return sent(ctx, s, "/v1/inbox", b)
	})
}

// sent sends a request that makes an event, and prints the event.
func sent(ctx context.Context, s *cli.Session, path string, body any) error {
	var taken api.EventTaken
	err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: path, Body: body,
		Bound: cli.CallTimeout}, &taken)
	if err != nil {
		return err
	}
	if s.JSON {
		return s.WriteJSON(taken)
	}
	return s.Write(fmt.Sprintf("%s is stored: `muster event show %s` says what is done about it\n",
		cli.Cell(taken.Event), cli.Cell(taken.Event)))
}

func newSources() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "sources",
		Short: "List the sources of events, and how many each has sent",
		Long: `sources lists who may send events, with the number of those that were taken, came again,
were refused in a flood, wait, and were set aside.`,
		Example:           "  muster event sources\n  muster event sources -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var l api.EventSources
		if err := s.Get(ctx, "/v1/ingress", nil, &l); err != nil {
			return err
		}
		if s.JSON {
			l.Sources = cli.Filled(l.Sources)
			return s.WriteJSON(l)
		}
		if l.Complaint != "" {
			s.Say("the file of sources has mistakes, and is not in force: %s", cli.Cell(l.Complaint))
		}
		g := cli.NewGrid("SOURCE", "PRESET", "CUSTOMER", "CLASS", ">TAKEN", ">AGAIN", ">FLOOD",
			">WAITING", ">ASIDE")
		for _, one := range l.Sources {
			n := func(words ...string) string {
				var sum int64
				for _, word := range words {
					sum += one.Counts[word]
				}
				return strconv.FormatInt(sum, 10)
			}
			g.Add(cli.Cell(one.Source), cli.OrDash(cli.Cell(one.Preset)),
				cli.OrDash(cli.Cell(one.Customer)), cli.Cell(one.Class), n("taken"), n("again"),
				n("flood"), n("waiting"), n("stuck", "doubted"))
		}
		return s.List(l.Sources, g, "nobody may send events: docs/EVENTS.md says how")
	})
}

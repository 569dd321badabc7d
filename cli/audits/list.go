package audits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/audit"
	"muster/cli"
	"muster/cli/watch"
)

// NewAudit makes the command audit.
func NewAudit() *cobra.Command {
	c := &cobra.Command{
		Use:   "audit",
		Short: "Show and examine the log of who ordered what",
		Long: `Each order is in the audit log before its effect: who gave it, how that was proven, what
and why, and how it ended. So are refused logins, ticks of schedules and changed
inventories. The log is a Merkle tree whose checkpoints a server signs; muster audit
verify finds what somebody has changed in it since.`,
		Example: `  muster audit ls --who os:alice --from 2026-11-01
  muster audit verify --checkpoint /mnt/worm/audit.log
  muster audit prove 1205 > proof.json`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newList(), newShow(), newVerify(), newProve(), newExport(), newStatus(), newErase())
	return c
}

// filter has the flags that pick entries.
type filter struct {
	who, verb, object, from, to string
	all                         bool
	limit                       int
	before                      int64
}

// pageMax is the most entries that an answer has.
const pageMax = 500

// query reports all mistakes in the flags.
func (f filter) query() (url.Values, error) {
	var errs []error
	q := url.Values{}
	for name, value := range map[string]string{"who": f.who, "verb": f.verb, "object": f.object} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, text := range map[string]string{"from": f.from, "to": f.to} {
		if text == "" {
			continue
		}
		at, err := cli.When(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", name, err))
		}
		q.Set(name, at.UTC().Format(time.RFC3339Nano))
	}
	if f.limit < 1 || f.limit > pageMax {
		errs = append(errs, fmt.Errorf("--limit %d: want 1 to %d", f.limit, pageMax))
	}
	if f.before < 0 {
		errs = append(errs, fmt.Errorf("--before %d: want the number of an entry", f.before))
	}
	q.Set("limit", strconv.Itoa(f.limit))
	if f.before > 0 {
		q.Set("before", strconv.FormatInt(f.before, 10))
	}
	if f.all {
		q.Set("all", "true")
	}
	return q, errors.Join(errs...)
}

func newList() *cobra.Command {
	f := filter{limit: 50}
	c := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List entries, the newest first",
		Long: `ls lists entries of the audit log, the newest first, each order with its outcome. An
order without an outcome is under way, or nobody knows how it ended. Verbs and objects
may end with a star.`,
		Example: `  muster audit ls --verb 'task.*' --object task/0wcy7y2fb2
  muster audit ls --who corp:alice~k3f9x2qa --from 2026-11-01 --to 2026-12-01
  muster audit ls --limit 500 -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().StringVar(&f.who, "who", "", "only entries of this `principal`")
	c.Flags().StringVar(&f.verb, "verb", "", "only this `verb`, such as task.submit or task.*")
	c.Flags().StringVar(&f.object, "object", "", "only this `object`, such as zone/default or host/*")
	c.Flags().StringVar(&f.from, "from", "", "only entries of this `time` or later")
	c.Flags().StringVar(&f.to, "to", "", "only entries before this `time`")
	c.Flags().BoolVar(&f.all, "all", false, "also the entries that say how a request ended")
	c.Flags().IntVar(&f.limit, "limit", f.limit, "entries of a page, at most 500")
	c.Flags().Int64Var(&f.before, "before", 0, "only entries before this `number`")
	for _, name := range []string{"who", "object", "from", "to", "limit", "before"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	cli.CompleteFlag(c, "verb", "task.*", "zone.*", "customer.*", "host.*", "window.*", "schedule.*",
		"token.*", "login", "halt", "lift", "inventory.publish")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, _ []string) error {
		q, err := f.query()
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var page api.AuditPage
		if err := s.Get(ctx, "/v1/audit", q, &page); err != nil {
			return err
		}
		if s.JSON {
			page.Entries = cli.Filled(page.Entries)
			return s.WriteJSON(page)
		}
		if err := s.List(page.Entries, grid(page.Entries), "there are no such entries"); err != nil {
			return err
		}
		if page.Next > 0 {
			s.Say("there are more: the same with --before %d", page.Next)
		}
		return nil
	})
}

func grid(list []api.AuditEntry) cli.Grid {
	g := cli.NewGrid(">ENTRY", "TIME", "WHO", "PROOF", "VERB", "OBJECT", ">HOSTS", "RESULT", "REASON")
	for _, e := range list {
		hosts := "-"
		if e.Task != nil && e.Task.Hosts > 0 {
			hosts = strconv.Itoa(e.Task.Hosts)
		}
		g.Add(strconv.FormatInt(e.Seq, 10), cli.Moment(e.At), who(e), cli.OrDash(cli.Cell(e.Proof)),
			cli.Cell(e.Verb), cli.OrDash(cli.Fit(cli.Cell(e.Object), watch.LineColumns)), hosts, result(e),
			cli.OrDash(cli.Fit(cli.Cell(e.Said.Reason), watch.LineColumns)))
	}
	return g
}

// refColumns is the part of a reference that tells people apart.
const refColumns = 12

// who returns the name behind an entry, or that it was erased.
func who(e api.AuditEntry) string {
	if e.Erased {
		return "(erased) " + cli.Cell(e.Who[:min(refColumns, len(e.Who))])
	}
	return cli.OrDash(cli.Cell(e.Who))
}

// result returns how a request ended.
func result(e api.AuditEntry) string {
	text := "-"
	switch {
	case e.Ended != nil:
		text = cli.Cell(e.Ended.Result)
	case e.Kind == audit.KindOrder:
		text = "not known"
	}
	if e.Times > 1 {
		text += fmt.Sprintf(" ×%d", e.Times)
	}
	return text
}

// entryArg reads the number of an entry.
func entryArg(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, cli.Exit(cli.ExitUsage, fmt.Errorf("%q: want the number of an entry, as `muster audit "+
			"ls` shows it", text))
	}
	return n, nil
}

func newShow() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "show ENTRY",
		Short: "Show one entry with all that is kept of it",
		Long: `show shows an entry. With -o json it also has the record as the tables keep it: the leaf,
whose bytes are hashed, the signature, the salts.`,
		Example:           "  muster audit show 1205\n  muster audit show 1205 -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, args []string) error {
		seq, err := entryArg(args[0])
		if err != nil {
			return err
		}
		var d api.AuditDetail
		if err := s.Get(ctx, fmt.Sprintf("/v1/audit/entries/%d", seq), nil, &d); err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(d)
		}
		return s.Write(cli.Details(details(d)...))
	})
}

func details(d api.AuditDetail) [][2]string {
	e := d.AuditEntry
	out := [][2]string{{"entry", strconv.FormatInt(e.Seq, 10)}, {"id", cli.Cell(e.ID)},
		{"time", cli.Moment(e.At)}, {"kind", cli.Cell(e.Kind)}, {"who", who(e)},
		{"proof", cli.Cell(e.Proof)}, {"from", cli.Cell(e.Said.From)}, {"verb", cli.Cell(e.Verb)},
		{"object", cli.Cell(e.Object)}, {"reason", cli.Cell(e.Said.Reason)}}
	if t := e.Task; t != nil {
		runbook := cli.Cell(strings.TrimSpace(t.Runbook + " " + t.RunbookHash))
		out = append(out, [2]string{"runbook", runbook}, [2]string{"order", cli.Cell(t.Order)},
			[2]string{"hosts", strconv.Itoa(t.Hosts)})
	}
	status := ""
	if e.Ended != nil && e.Ended.Status > 0 {
		status = strconv.Itoa(e.Ended.Status)
	}
	return append(out, [2]string{"result", result(e)}, [2]string{"status", status},
		[2]string{"server", cli.Cell(e.Server)}, [2]string{"late", cli.Cell(e.Late)})
}

func newStatus() *cobra.Command {
	return cli.Command(&cobra.Command{
		Use:   "status",
		Short: "Show how far the log is signed and sent, and the public keys",
		Long: `status shows how many entries the log has, how many of them a signed checkpoint has, how
far each sink has the log, and the public keys by which its signatures are checked. Keep
the keys elsewhere, for muster audit verify --key.`,
		Example: `  muster audit status
  muster audit status -o json | jq -r '.keys[]' > audit.keys`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, s *cli.Session, _ []string) error {
		var st api.AuditState
		if err := s.Get(ctx, "/v1/audit/state", nil, &st); err != nil {
			return err
		}
		if s.JSON {
			st.Keys, st.Sinks = cli.Filled(st.Keys), cli.Filled(st.Sinks)
			return s.WriteJSON(st)
		}
		pairs := [][2]string{{"entries", strconv.FormatInt(st.Entries, 10)},
			{"signed", strconv.FormatInt(st.Signed, 10)},
			{"trouble", cli.Cell(cmp.Or(st.Trouble, "none"))}}
		if st.Spooled > 0 {
			pairs = append(pairs, [2]string{"not in the tables", strconv.Itoa(st.Spooled)})
		}
		for _, key := range st.Keys {
			pairs = append(pairs, [2]string{"key", cli.Cell(key)})
		}
		if err := s.Write(cli.Details(pairs...) + "\n"); err != nil {
			return err
		}
		g := cli.NewGrid("SINK", ">ENTRIES", ">CHECKPOINT", "LAST", "TROUBLE")
		for _, one := range st.Sinks {
			g.Add(cli.Cell(one.Sink), strconv.FormatInt(one.Entries, 10),
				strconv.FormatInt(one.Checkpoints, 10), cli.Moment(one.At),
				cli.OrDash(cli.Cell(one.Trouble)))
		}
		return s.List(st.Sinks, g, "no place outside has had anything: audit.sinks names such "+
			"places")
	})
}

func newErase() *cobra.Command {
	var entry int64
	reason := ""
	c := &cobra.Command{
		Use:   "erase [PRINCIPAL]",
		Short: "Erase the name of a person, or the reason of an entry",
		Long: `erase takes a name out of the audit log, with the reasons and addresses of that person's
entries, or with --entry the reason and the address of one entry. The entries stay, and
all hashes and signatures hold: they have only a commitment to the name. The erasure is
an entry itself. Copies that sinks and exports have are not in reach.`,
		Example: `  muster audit erase corp:alice~k3f9x2qa --reason "asked by letter of 2026-11-02"
  muster audit erase --entry 1205 --reason "the reason named a customer's employee"`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	c.Flags().Int64Var(&entry, "entry", -1, "erase reason and address of this `entry`")
	c.Flags().StringVar(&reason, "reason", "", "`why`, for people who miss it later")
	for _, name := range []string{"entry", "reason"} {
		cli.CompleteFlagWith(c, name, cobra.NoFileCompletions)
	}
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		b := api.AuditErase{OrderRequest: api.OrderRequest{Reason: reason}}
		if entry >= 0 {
			b.Entry = &entry
		}
		if len(args) == 1 {
			b.Name = args[0]
		}
		switch {
		case (b.Name == "") == (b.Entry == nil):
			return cli.Exit(cli.ExitUsage, errors.New("want a principal, or --entry NUMBER"))
		case strings.TrimSpace(reason) == "":
			return cli.Exit(cli.ExitUsage, errors.New("--reason is needed: say why it is erased"))
		}
		var done api.AuditErased
		err := s.Do(ctx, cli.Call{Method: http.MethodPost, Path: "/v1/audit/erase", Body: b,
			Bound: cli.CallTimeout}, &done)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.WriteJSON(done)
		}
		return s.Write("erased: " + cli.Cell(done.Object) + "\n")
	})
}

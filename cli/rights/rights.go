package rights

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/access"
	"muster/cli"
	"muster/cli/reach"
	"muster/fleet"
	"muster/internal/files"
)

// fileMax bounds files of access and of expectations.
const fileMax = 1 << 20 // bytes

// NewAccess makes the command access.
func NewAccess() *cobra.Command {
	c := &cobra.Command{
		Use:   "access",
		Short: "Explain, test and check a file of who may do what",
		Long: `access works on a file that says which people, programs and groups may do what, with
which runbooks, on which hosts. explain names the grant that allows something, or what is
missing; test holds the file against a table of expectations, for a CI; check lists its
mistakes. All of them read files on this machine and connect to nothing.

Servers follow the file /etc/muster/access.yaml, or that of server.access, and refuse
what it does not allow. 'muster whoami' shows what a running server thinks of you.`,
		Example: `  muster access check access.yaml
  muster access explain os:alice run firewall fw001 --file access.yaml
  muster access test expectations.yaml --file access.yaml --inventory fleet.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newExplain(), newTest(), newCheck())
	return c
}

// given are the flags that name files.
type given struct {
	*reach.FileFlags
	file      string
	inventory []string
	output    string
}

// addTo adds the flags to a command. One that takes the file as an argument has no --file.
func (g *given) addTo(c *cobra.Command, file bool) {
	g.FileFlags = reach.AddFileFlags(c)
	g.Away = true // no host is dialled, so nobody needs its key
	byDefault := ""
	if file {
		byDefault = " (default: those of the configuration)"
		c.Flags().StringVar(&g.file, "file", "", "`file` that says who may do what")
		cli.MissesItself(c, "file")
	}
	c.Flags().StringArrayVar(&g.inventory, "inventory", nil, "`file` that lists the hosts"+byDefault+
		"; can be repeated")
	c.Flags().StringVarP(&g.output, "output", "o", cli.OutputTable, "table or json")
	cli.CompleteFlag(c, "output", cli.OutputTable, cli.OutputJSON)
	c.Annotations = map[string]string{cli.Offline: "yes"}
}

// check reports the mistakes in the flags.
func (g *given) check() error {
	var missing error
	if strings.TrimSpace(g.file) == "" {
		missing = errors.New("--file is missing: want the file that says who may do what")
	}
	return errors.Join(missing, cli.CheckOutput(g.output))
}

// read reads a file.
func read(ctx context.Context, name string) (fleet.Source, error) {
	data, err := files.ReadGiven(ctx, name, fileMax)
	return fleet.Source{Name: name, Data: data}, err
}

// rights reads the policy and, if a question names a host, the inventory.
func (g *given) rights(ctx context.Context, hosts bool) (*access.Rights, error) {
	src, err := read(ctx, g.file)
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	policy, err := access.Parse(src)
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	inv := &fleet.Inventory{}
	if hosts {
		if inv, err = g.Inventory(ctx, g.inventory); err != nil {
			return nil, cli.Exit(cli.ExitUsage, err)
		}
	}
	return policy.Over(inv), nil
}

// explainFlags are the flags of access explain.
type explainFlags struct {
	given
	groups []string
}

// noRunbook stands for a question that concerns no runbook but a host.
const noRunbook = "-"

func newExplain() *cobra.Command {
	var f explainFlags
	c := &cobra.Command{
		Use:   "explain WHO VERB [RUNBOOK] [HOST]",
		Short: "Say whether somebody may do something, and why",
		Long: `explain names the line that allows something, or what is missing and who may grant it.
WHO is a principal, such as os:alice for a user of the machine or user:ci for the owner
of tokens. Without HOST the question is whether it is allowed in the whole house; - in
the place of RUNBOOK stands for none, as when a host is drained.

Verbs: ` + verbList() + `.

Exit codes: 0 it is allowed, 1 it is refused, 2 wrong use, or a file has mistakes.`,
		Example: `  muster access explain os:alice run firewall fw001 --file access.yaml
  muster access explain os:bob order - fw001 --group os-group:ops --file access.yaml
  muster access explain user:ci audit --file access.yaml -o json`,
		Args:              cobra.RangeArgs(2, 4),
		ValidArgsFunction: completeQuestion,
	}
	f.addTo(c, true)
	c.Flags().StringArrayVar(&f.groups, "group", nil,
		"`group` of WHO, such as os-group:ops; can be repeated")
	cli.CompleteFlagWith(c, "group", cobra.NoFileCompletions)
	c.RunE = func(c *cobra.Command, args []string) error { return f.explain(c, args) }
	return c
}

func verbList() string {
	return strings.Join(cli.Texts(access.Verbs()), ", ")
}

// completeQuestion offers the verbs; WHO, RUNBOOK and HOST are in files that are not named yet.
func completeQuestion(_ *cobra.Command, args []string, _ string) (
	[]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return cli.Texts(access.Verbs()), cli.NoFiles
	}
	return nil, cli.NoFiles
}

// question reads the arguments of explain, and reports all mistakes in them.
func (f explainFlags) question(args []string) (who access.Who, act access.Act, host string,
	err error) {
	who = access.Who{Principal: args[0], Groups: f.groups}
	act.Verb = access.Verb(args[1])
	errs := []error{access.CheckPrincipal(args[0]), access.CheckVerb(args[1])}
	for _, group := range f.groups {
		errs = append(errs, access.CheckGroup(group))
	}
	if len(args) > 2 && args[2] != noRunbook {
		act.Runbook = args[2]
		errs = append(errs, access.CheckRunbook(act.Runbook))
	}
	if len(args) > 3 {
		host = args[3]
		errs = append(errs, fleet.CheckName(host))
	}
	return who, act, host, errors.Join(errs...)
}

func (f explainFlags) explain(c *cobra.Command, args []string) error {
	who, act, host, err := f.question(args)
	if err = errors.Join(f.check(), err); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	r, err := f.rights(c.Context(), host != "")
	if err != nil {
		return err
	}
	answer := r.Explain(who, act, host)
	if f.output == cli.OutputJSON {
		err = cli.PrintJSON(c.OutOrStdout(), answer)
	} else {
		_, err = fmt.Fprintln(c.OutOrStdout(), cli.Cell(answer.Words))
	}
	if err == nil && !answer.Allowed {
		return cli.ExitWith(cli.ExitNotAll)
	}
	return err
}

func newTest() *cobra.Command {
	var g given
	c := &cobra.Command{
		Use:   "test EXPECTATIONS",
		Short: "Hold a file of who may do what against a table of expectations",
		Long: `test asks the questions of a table, and names those with another answer than the table
wants. A line of the table is such as

  - {who: os:bob, groups: [os-group:ops], verb: run, runbook: x, host: ns1, want: allow}

with want: allow or refuse. runbook, host and groups can be left out. A line about a host
that the inventory lacks always fails, because a mistyped host is refused by itself.

Exit codes: 0 all is as wanted, 1 something is not, 2 wrong use, or a file has mistakes.`,
		Example: `  muster access test expectations.yaml --file access.yaml --inventory fleet.yaml
  muster access test expectations.yaml --file access.yaml --inventory fleet.yaml -o json`,
		Args: cobra.ExactArgs(1),
	}
	g.addTo(c, true)
	c.RunE = func(c *cobra.Command, args []string) error { return g.test(c, args[0]) }
	return c
}

// result is an expectation for programs.
type result struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Question string `json:"question"`
	Want     string `json:"want"`
	OK       bool   `json:"ok"`
	Wrong    string `json:"wrong,omitempty"` // what holds instead
}

func (g *given) test(c *cobra.Command, file string) error {
	if err := g.check(); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	src, err := read(c.Context(), file)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	wanted, wrong := access.ParseExpectations(src)
	r, err := g.rights(c.Context(),
		slices.ContainsFunc(wanted, func(e access.Expectation) bool { return e.Host != "" }))
	if err = errors.Join(wrong, err); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	failures := access.Test(r, wanted)
	results := resultsOf(wanted, failures)
	if g.output == cli.OutputJSON {
		err = cli.PrintJSON(c.OutOrStdout(), results)
	} else {
		_, err = fmt.Fprint(c.OutOrStdout(), tested(results, len(failures)))
	}
	if err == nil && len(failures) > 0 {
		return cli.ExitWith(cli.ExitNotAll)
	}
	return err
}

// resultsOf marks the expectations that failed.
func resultsOf(wanted []access.Expectation, failures []access.Failure) []result {
	list := make([]result, len(wanted))
	for i, e := range wanted {
		list[i] = result{File: e.File, Line: e.Line, Question: e.String(), Want: "refuse", OK: true}
		if e.Allow {
			list[i].Want = "allow"
		}
	}
	for _, f := range failures {
		list[f.Index].OK, list[f.Index].Wrong = false, f.Words
	}
	return list
}

// tested returns the results for people: those that failed, and a count.
func tested(results []result, failed int) string {
	var b strings.Builder
	for _, r := range results {
		if !r.OK {
			fmt.Fprintf(&b, "FAIL  %s:%d  %s: want %s\n        %s\n", cli.Cell(r.File), r.Line,
				cli.Cell(r.Question), r.Want, cli.Cell(r.Wrong))
		}
	}
	fmt.Fprintf(&b, "%s, %d as wanted\n", cli.Count(len(results), "expectation"), len(results)-failed)
	return b.String()
}

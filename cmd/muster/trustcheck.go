package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/cli/books"
	"muster/cli/reach"
	"muster/fleet"
	"muster/internal/files"
	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/internal/sshsig"
	"muster/trust"
)

func newTrust() *cobra.Command {
	c := &cobra.Command{
		Use:   "trust",
		Short: "Check the folder by which nodes decide whose orders count",
		Long: `The folder trust of a node has policy.yaml, allowed_signers and node.key: docs/TRUST.md.
muster init makes it; check says what is wrong with one.`,
		Example: `  muster trust check
  muster trust check ./trust --inventory fleet.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTrustCheck())
	return c
}

// trustCheck holds the flags of the command.
type trustCheck struct {
	*reach.FileFlags
	inventory, runbooks []string
	output              string
}

func newTrustCheck() *cobra.Command {
	var o trustCheck
	c := &cobra.Command{
		Use:   "check [DIR]",
		Short: "Report what is wrong with a folder trust",
		Long: `check reads policy.yaml, allowed_signers and node.key as a node does, and reports all
mistakes, each with its file and line. It also finds what is well-formed and cannot be
meant so:

  runbooks and hosts of a rule that are not there, such as a misspelt name or label
  rules that never count, because rules before them take all their jobs
  keys that sign no orders: they have ended, or are for something else
  keys that end within 14 days
  rules that can never hold: too few people, or no server, with a key
  a server of this machine without a key, or with one that the folder does not list

Runbooks and hosts are those of the configuration, or those that flags name; without an
inventory nothing is said of hosts. DIR is trust.dir unless it is given.

Exit codes: 0 nothing was found, 1 something was, 2 wrong use.`,
		Example: `  muster trust check
  muster trust check ./trust --inventory fleet.yaml --runbooks ./runbooks
  muster trust check -o json`,
		Args:        cobra.MaximumNArgs(1),
		Annotations: map[string]string{cli.Offline: "yes"},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	o.FileFlags = reach.AddFileFlags(c)
	c.Flags().StringArrayVar(&o.inventory, "inventory", nil,
		"`source` of hosts, in place of those of the configuration")
	c.Flags().StringArrayVar(&o.runbooks, "runbooks", nil,
		"`file` or folder of runbooks, in place of those of the configuration")
	books.OutputFlag(c, &o.output)
	c.RunE = func(c *cobra.Command, args []string) error { return o.run(c, args) }
	return c
}

// trustFindings is the answer for programs.
type trustFindings struct {
	Dir      string         `json:"dir"`
	Rules    int            `json:"rules"`
	Signers  int            `json:"signers"`
	Findings []trustFinding `json:"findings"`
}

// trustFinding is a mistake, or something that cannot be meant so.
type trustFinding struct {
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	Text string `json:"text"`
}

func (f trustFinding) String() string {
	switch {
	case f.File == "":
		return f.Text
	case f.Line == 0:
		return f.File + ": " + f.Text
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Text)
}

func (o *trustCheck) run(c *cobra.Command, args []string) error {
	s, err := o.Settings()
	if err = errors.Join(cli.CheckOutput(o.output), err); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	dir := s.Keys.Trust.Dir
	if len(args) > 0 {
		dir = args[0]
	}
	if dir == "" {
		return cli.Exit(cli.ExitUsage, errors.New("there is no folder trust in its usual place, so this "+
			"machine believes Redis: name a folder, or trust.dir in the configuration"))
	}
	f := trustFindings{Dir: dir, Findings: []trustFinding{}}
	if err := o.look(c.Context(), s, &f); err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if o.output == cli.OutputJSON {
		err = cli.PrintJSON(c.OutOrStdout(), f)
	} else if len(f.Findings) == 0 {
		_, err = fmt.Fprintf(c.OutOrStdout(), "%s: %s, %s, nothing wrong\n", dir,
			cli.Count(f.Rules, "rule"), cli.Count(f.Signers, "signer"))
	}
	var all []error
	for _, one := range f.Findings {
		all = append(all, errors.New(one.String()))
	}
	if o.output == cli.OutputJSON && len(all) > 0 {
		all = []error{fmt.Errorf("%s: %s", dir, cli.Count(len(all), "finding"))}
	}
	if len(all) == 0 {
		return err
	}
	return cli.Exit(cli.ExitNotAll, errors.Join(append(all, err)...))
}

// look finds all that is wrong with the folder.
func (o *trustCheck) look(ctx context.Context, s settings.Settings, f *trustFindings) error {
	k, err := o.known(ctx, s, f.Dir)
	if err != nil {
		return err
	}
	rules, err := settings.TrustRules(f.Dir)()
	if err != nil {
		f.Findings = findingsOf(err)
		f.add(policyLooks(k)) // as far as it can be read by itself
		return nil
	}
	f.Rules, f.Signers = len(rules.Policy.Rules()), rules.Signers.Len()
	f.add(rules.Looks(k))
	requires := slices.ContainsFunc(rules.Policy.Rules(), func(r trust.Rule) bool {
		return r.Mode == trust.Require
	})
	if requires && len(s.Inventory) > 0 && len(k.Servers) == 0 {
		f.Findings = append(f.Findings, trustFinding{Text: "this machine has an inventory, as servers " +
			"have, and no key of servers: nodes with this policy refuse the tasks of its server; " +
			"`muster init` makes the first key, else copy server.key from another server"})
	}
	return nil
}

func (f *trustFindings) add(list fleet.Mistakes) {
	for _, m := range list {
		f.Findings = append(f.Findings, trustFinding(m))
	}
}

// known returns what this machine knows of the house.
func (o *trustCheck) known(ctx context.Context, s settings.Settings, dir string) (trust.Known,
	error) {
	k := trust.Known{Policy: filepath.Join(dir, settings.TrustPolicy), Now: time.Now(),
		Signers: filepath.Join(dir, settings.TrustSigners)}
	paths := s.Runbooks
	if len(o.runbooks) > 0 {
		paths = o.runbooks
	}
	catalog, err := readCatalog(paths)
	if err != nil {
		return k, err
	}
	for _, r := range catalog.All() {
		k.Runbooks = append(k.Runbooks, r.Name)
	}
	if len(o.inventory) > 0 || len(s.Inventory) > 0 {
		if k.Hosts, err = o.Inventory(ctx, o.inventory); err != nil {
			return k, err
		}
	}
	keys, err := settings.ServerKeys(s.Server.Key)()
	if err != nil {
		return k, err
	}
	if !keys.None() {
		key, err := sshsig.KeyText(keys.Publics(serverkey.Orders)[0])
		if err != nil {
			return k, err
		}
		k.Servers = []string{strings.TrimSpace(key)}
	}
	return k, nil
}

// policyMax bounds what is read of a policy.
const policyMax = 64 << 10 // bytes

// policyLooks looks at a policy whose neighbours cannot be read.
func policyLooks(k trust.Known) fleet.Mistakes {
	data, err := files.Read(k.Policy, policyMax)
	if err != nil {
		return nil
	}
	p, err := trust.ParsePolicy(fleet.Source{Name: k.Policy, Data: data})
	if err != nil {
		return nil
	}
	return p.Looks(k)
}

// placed is a line of an error that begins with its place.
var placed = regexp.MustCompile(`^(/?[^:\n]+):(?: line )?(\d+): (.*)$`)

// findingsOf returns the mistakes in an error, one a line.
func findingsOf(err error) []trustFinding {
	var list []trustFinding
	for text := range strings.SplitSeq(err.Error(), "\n") {
		one := trustFinding{Text: text}
		if m := placed.FindStringSubmatch(text); m != nil {
			one.File, one.Text = m[1], m[3]
			one.Line, _ = strconv.Atoi(m[2]) // digits
		}
		list = append(list, one)
	}
	return list
}

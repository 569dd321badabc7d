package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/reach"
	"muster/fleet"
	"muster/internal/sources"
)

const sourcesHelp = `Sources are what muster.yaml may list under inventory: files, of muster's own or
Ansible's INI, YAML and JSON; folders; programs, which are run with --list; URLs.`

func newHostsImport() *cobra.Command {
	c := &cobra.Command{
		Use:   "import SOURCE…",
		Short: "Print hosts from elsewhere as an inventory of muster",
		Long: `import reads inventories, such as those of Ansible, or what OpenSSH knows of hosts, and
prints their hosts as an inventory of muster's own. It names what it could not take over.

` + sourcesHelp + `

Exit codes: 0 all was read, 1 there are mistakes.`,
		Example: `  muster hosts import /etc/ansible/hosts > fleet.yaml
  muster hosts import --ssh-config ~/.ssh/config > fleet.yaml`,
	}
	f := reach.AddFileFlags(c)
	f.Away = true
	var ssh []string
	c.Flags().StringArrayVar(&ssh, "ssh-config", nil, "`file` of OpenSSH; can be given several times")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args)+len(ssh) == 0 {
			return cli.Exit(cli.ExitUsage, errors.New(
				"nothing to import: name a source, or --ssh-config FILE"))
		}
		inv, err := f.Imported(c.Context(), args, ssh)
		if err != nil {
			return err
		}
		text, err := inv.YAML("/etc/muster/known_hosts")
		if err != nil {
			return cli.Exit(cli.ExitNotAll, err)
		}
		tellImport(c.ErrOrStderr(), inv)
		_, err = c.OutOrStdout().Write(text)
		return err
	}
	return c
}

// tellImport prints the notes about an imported inventory.
func tellImport(w io.Writer, inv *fleet.Inventory) {
	tell(w, "note: ", inv.Notes())
	for _, h := range inv.Strangers() {
		fmt.Fprintf(w, "muster: jump host %s was not listed as a host: it is now\n", cli.Cell(h.Name))
	}
	if without := inv.WithoutKey(); len(without) > 0 {
		fmt.Fprintf(w, "muster: no host key is known of %s: they are looked up in "+
			"/etc/muster/known_hosts\n", cli.Cell(fleet.Fold(without)))
	}
}

func newHostsCheck() *cobra.Command {
	c := &cobra.Command{
		Use:   "check [SOURCE…]",
		Short: "Find what is wrong with an inventory, or with hosts",
		Long: `check reads an inventory as the server does and lists all findings at once, each with
its place. The server refuses an inventory that has a mistake. The other findings are
no mistakes, but need a look: groups of one host, hosts without a host key, two hosts
with one address, keys that stand twice or that nothing reads, variables that look
misspelt, private keys on this machine that others can read.
Without sources it reads those of the configuration.

` + sourcesHelp + `

Exit codes: 0 nothing was found, 1 something was.`,
		Example: `  muster hosts check
  muster hosts check fleet.yaml /etc/ansible/hosts
  muster hosts check fleet.yaml -o json`,
	}
	f := reach.AddFileFlags(c)
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := f.Sources(args)
		if err != nil {
			return err
		}
		found, err := sources.New(cfg).Check(c.Context(), time.Now())
		clean := err == nil && len(found.Mistakes)+len(found.Looks) == 0
		if output, _ := c.Flags().GetString("output"); output == "json" {
			err = writeFound(c.OutOrStdout(), found, err)
		} else {
			tellFound(c.OutOrStdout(), c.ErrOrStderr(), found, err)
		}
		if err == nil && clean {
			return nil
		}
		return cli.Exit(cli.ExitNotAll, nil)
	}
	return c
}

// tellFound prints the findings about an inventory, for people.
func tellFound(out, errs io.Writer, found sources.Found, unread error) {
	tell(errs, "note: ", found.Notes)
	tell(errs, "", found.Mistakes)
	tell(errs, "look: ", found.Looks)
	if unread != nil {
		for line := range strings.Lines(unread.Error()) {
			fmt.Fprintf(errs, "muster: %s\n", cli.Cell(strings.TrimRight(line, "\n")))
		}
	}
	switch mistakes, looks := len(found.Mistakes), len(found.Looks); {
	case unread != nil:
		fmt.Fprintf(out, "not all was read; %s in the rest\n", cli.Count(mistakes, "mistake"))
	case mistakes+looks == 0:
		fmt.Fprintf(out, "%s, no mistakes\n", cli.Count(found.Hosts, "host"))
	case mistakes == 0:
		fmt.Fprintf(out, "%s, no mistakes, %d to look at\n", cli.Count(found.Hosts, "host"), looks)
	default:
		fmt.Fprintf(out, "%s: the server refuses this; %d to look at\n",
			cli.Count(mistakes, "mistake"), looks)
	}
}

// remarked is one finding with its place.
type remarked struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// writeFound writes the findings for programs.
func writeFound(out io.Writer, found sources.Found, unread error) error {
	list := func(ms fleet.Mistakes) []remarked {
		lines := make([]remarked, len(ms))
		for i, m := range ms {
			lines[i] = remarked(m)
		}
		return lines
	}
	said := struct {
		Hosts    int        `json:"hosts"`
		Mistakes []remarked `json:"mistakes"`
		Looks    []remarked `json:"looks"`
		Notes    []remarked `json:"notes"`
		Unread   string     `json:"unread,omitempty"`
	}{Hosts: found.Hosts, Mistakes: list(found.Mistakes), Looks: list(found.Looks),
		Notes: list(found.Notes)}
	if unread != nil {
		said.Unread = unread.Error()
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(said)
}

func newHostsDiff() *cobra.Command {
	c := &cobra.Command{
		Use:   "diff [SOURCE…]",
		Short: "Show what an inventory would change",
		Long: `diff compares an inventory with the one that the server has in force: hosts that come,
go or change, and limits. Without sources it reads those of the configuration.

` + sourcesHelp + `

Exit codes: 0 nothing is different, 1 something is, 2 the inventory has mistakes.`,
		Example: `  muster hosts diff fleet.yaml
  muster hosts diff fleet.yaml -o json`,
	}
	f := reach.AddFileFlags(c)
	f.Away = true
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		local, err := f.Inventory(ctx, args)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		var p api.PublishedInventory
		if err := s.Get(ctx, "/v1/inventory", nil, &p); err != nil {
			return err
		}
		limits := make([]fleet.Limit, len(p.Limits))
		for i, l := range p.Limits {
			limits[i] = fleet.Limit(l)
		}
		published, err := fleet.New(p.Hosts, limits...)
		if err != nil {
			return s.Nonsense("its inventory cannot be read: " + err.Error())
		}
		if unknown := takeKeys(local, published); len(unknown) > 0 {
			s.Say("host keys of %s are not known here, so they are not compared",
				cli.Cell(fleet.Fold(unknown)))
		}
		changes := fleet.Diff(published, local)
		if s.JSON {
			err = s.WriteJSON(changes)
		} else {
			err = s.Write(changesText(changes, s.Colours))
		}
		if err == nil && !changes.Empty() {
			return cli.Exit(cli.ExitNotAll, nil)
		}
		return err
	})
}

// takeKeys gives hosts without a local key their published keys, and returns the names of these
// hosts: the files that the server reads may be missing on this machine.
func takeKeys(local, published *fleet.Inventory) []string {
	var taken []string
	for _, name := range local.WithoutKey() {
		h, _ := published.Host(name)
		t := fleet.Trust{HostKeys: h.HostKeys, HostCAs: h.HostCAs, Revoked: h.Revoked}
		if local.SetTrust(name, t) == nil {
			taken = append(taken, name)
		}
	}
	return taken
}

// tell prints notes, each behind a word for its kind.
func tell(w io.Writer, kind string, notes fleet.Mistakes) {
	if len(notes) == 0 {
		return
	}
	for line := range strings.Lines(notes.Error()) {
		fmt.Fprintf(w, "muster: %s%s\n", kind, cli.Cell(strings.TrimRight(line, "\n")))
	}
}

// changesText shows changes as lines that begin with +, - or ~.
func changesText(ch fleet.Changes, colours cli.Palette) string {
	var b strings.Builder
	for _, name := range ch.Removed {
		fmt.Fprintln(&b, colours.Paint(cli.Red, "- "+cli.Cell(name)))
	}
	for _, name := range ch.Added {
		fmt.Fprintln(&b, colours.Paint(cli.Green, "+ "+cli.Cell(name)))
	}
	for _, h := range ch.Changed {
		fmt.Fprintln(&b, colours.Paint(cli.Yellow, "~ "+cli.Cell(h.Host)))
		for _, f := range h.Fields {
			fmt.Fprintf(&b, "    %s: %s → %s\n", cli.Cell(f.Field), cli.OrDash(cli.Cell(f.From)),
				cli.OrDash(cli.Cell(f.To)))
		}
	}
	for _, l := range ch.Limits {
		fmt.Fprintf(&b, "~ limit %s: %s → %s\n", cli.Cell(l.Field), cli.OrDash(cli.Cell(l.From)),
			cli.OrDash(cli.Cell(l.To)))
	}
	if ch.Empty() {
		return "nothing is different\n"
	}
	fmt.Fprintf(&b, "%d added, %d removed, %d changed\n", len(ch.Added), len(ch.Removed),
		len(ch.Changed)+len(ch.Limits))
	return b.String()
}

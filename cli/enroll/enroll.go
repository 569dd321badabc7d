package enroll

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/cli/reach"
	"muster/fleet"
	"muster/fleet/remote"
)

// enrollFlags are the flags of hosts enroll.
type enrollFlags struct {
	inventory      []string
	write          string
	form           string
	replace        bool
	yes            bool // write without a question
	cas            []string
	all            bool
	parallel       int
	reach.KeyFlags // for the jump hosts
}

// New makes the command hosts enroll.
func New() *cobra.Command {
	var f enrollFlags
	c := &cobra.Command{
		Use:   "enroll SELECTOR",
		Short: "Collect the host keys of hosts, for a person to vouch for",
		Long: `enroll connects to hosts, lets them prove which host key they have, and prints it: the
line for known_hosts, and the fingerprint to compare with the host's own console. It
never logs in there. muster trusts a key only when it is in the inventory or in a
known_hosts file that the inventory names. --write FILE shows the keys, asks whether you
have compared them, and appends them to that file. A script that has compared them gives
--yes.

The server does not know a host that has no key yet. Name the file that lists the host
with --inventory, and the selector picks from that file.

If jump hosts with unknown keys stand on the way to a host, enroll shows their keys too,
the outermost first, and writes them with the rest after one question. To reach the hosts
behind a jump host, enroll logs in to the jump host.

If a host has an authority (host_ca or @cert-authority in its inventory, or --ca FILE),
enroll asks it for a certificate first. If that authority has signed the certificate, and
it holds for this host and this time and is not revoked, there is no key to pin: enroll
prints or writes the authority, unless the inventory has it. A certificate that does not
hold is an error, and enroll does not take its key instead. If the host shows no
certificate, enroll asks for its key.

Known keys stay as they are. enroll never writes a key that differs from the known one,
unless --replace is given: find out first why it changed. The exit code is 1 if a key
differs, or if a host shows no key.`,
		Example: `  muster hosts enroll 'fw[001-300]' --inventory /etc/muster/fleet.yaml
  muster hosts enroll new-fw1 --inventory fleet.yaml --write /etc/muster/known_hosts
  muster hosts enroll new-fw1 --inventory fleet.yaml --write known_hosts --yes
  muster hosts enroll '{role=fw},vpn1' --inventory fleet.yaml --write known_hosts
  muster hosts enroll 'role=branch' --ca host_ca.pub --write /etc/muster/known_hosts
  muster hosts enroll fw007 --write /etc/muster/known_hosts --replace`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	f.Add(c)
	fl := c.Flags()
	fl.StringArrayVar(&f.inventory, "inventory", nil,
		"`file` that lists the hosts, instead of asking the server; can be repeated")
	fl.StringVar(&f.write, "write", "", "known_hosts `file` to append new keys to")
	fl.StringVar(&f.form, "for", formKnownHosts, "print `lines` for known_hosts or inventory")
	fl.StringArrayVar(&f.cas, "ca", nil,
		"`file` with public keys of authorities that may certify the hosts; can be repeated")
	fl.BoolVar(&f.replace, "replace", false, "write keys that have changed in place of the old ones")
	fl.BoolVar(&f.yes, "yes", false, "write without a question: the fingerprints were compared")
	fl.BoolVar(&f.all, "all-types", false, "a key of every type that a host has, not only the best")
	fl.IntVar(&f.parallel, "parallel", reach.Parallel, "`hosts` at a time")
	cli.CompleteFlag(c, "for", formKnownHosts, formInventory)
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		on, err := f.check(ctx, s, args)
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return enrollHosts(ctx, s, f, on)
	})
}

// The forms of the printed keys.
const (
	formKnownHosts = "known_hosts"
	formInventory  = "inventory"
)

// check reads the selector and reports all mistakes in the flags.
func (f enrollFlags) check(ctx context.Context, s *cli.Session, args []string) (on string,
	err error) {
	var errs []error
	on, err = s.SelectorArg(ctx, args, cli.OrSayAll)
	if err == nil && on == "" {
		err = errors.New("the selector is empty: name hosts, or say all")
	}
	errs = append(errs, err, reach.CheckParallel(f.parallel))
	if f.replace && f.write == "" {
		errs = append(errs, errors.New("--replace is for keys that are written: give --write FILE, too"))
	}
	if f.form != formKnownHosts && f.form != formInventory {
		errs = append(errs, fmt.Errorf("--for %q: want %s or %s", f.form, formKnownHosts, formInventory))
	}
	return on, errors.Join(errs...)
}

func enrollHosts(ctx context.Context, s *cli.Session, f enrollFlags, on string) error {
	hosts, err := toEnroll(ctx, s.Client, f.inventory, on)
	if err != nil {
		return err
	}
	var book *knownFile
	if f.write != "" {
		if book, err = readKnownFile(f.write); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
	}
	cas, err := readAuthorities(f.cas)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	client, err := f.Client()
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	defer client.Close()
	list := (&enroller{client, f, cas, book}).all(ctx, hosts)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return tellEnrolled(ctx, s.Screen, f, list, book)
}

// tellEnrolled writes and shows the keys that hosts have shown.
func tellEnrolled(ctx context.Context, s *cli.Screen, f enrollFlags, list []enrolled,
	book *knownFile) error {
	told := false
	if book != nil {
		var err error
		if told, err = vouchFor(ctx, s, list, f, newAsker(s)); err != nil {
			return err
		}
		if err := book.take(list, f.replace); err != nil {
			return cli.Exit(cli.ExitNotAll, err)
		}
	}
	var err error
	switch {
	case told: // they were printed before they were written
	case s.JSON:
		err = s.WriteJSON(list)
	default:
		err = s.Write(enrolledText(list, f.form))
	}
	if err != nil {
		return err
	}
	return cli.ExitWith(shout(s, list, f))
}

// toEnroll returns the hosts that the selector means, drained or not, of the server or of files,
// with their known keys.
func toEnroll(ctx context.Context, c *cli.Client, files []string, on string) ([]fleet.Host, error) {
	if len(files) == 0 {
		l, err := c.Hosts(ctx, api.HostQuery{On: on, Drained: true})
		return l.Hosts, err
	}
	inv, err := (&reach.FileFlags{Away: true}).Inventory(ctx, files) // some are to be written yet
	if err != nil {
		return nil, err
	}
	sel, err := fleet.ParseSelector(on)
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	hosts, err := inv.Select(sel)
	if err != nil {
		return nil, cli.Exit(cli.ExitUsage, err)
	}
	return hosts, nil
}

// scan makes a host show its keys: the best one, or one of each type.
func scan(ctx context.Context, c *remote.Client, h fleet.Host, all bool) enrolled {
	e := enrolled{Host: h.Name, Address: reach.Address(h), Keys: []enrolledKey{}}
	sets := [][]string{remote.KeyTypes()}
	if all {
		sets = slices.Collect(slices.Chunk(remote.KeyTypes(), 1))
	}
	for _, types := range sets {
		key, err := c.Scan(ctx, h, types...)
		switch {
		case err == nil:
			e.Keys = append(e.Keys, enrolledKey{Type: key.Type, Fingerprint: key.Fingerprint,
				Key: key.Line, Line: knownName(h) + " " + key.Line})
		case remote.KindOf(err) != remote.KindRefused || !all:
			e.Error = err.Error()
			return e
		}
	}
	if len(e.Keys) == 0 {
		e.Error = "it shows no host key of a type that muster uses"
	}
	return e
}

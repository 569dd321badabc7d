package enroll

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/api"
	"muster/cli"
	"muster/cli/complete"
	"muster/fleet"
)

// cleared says what is remembered of a host no more.
type cleared struct {
	api.ClearedHost
	Keys []string `json:"host_keys"` // fingerprints of the keys that were taken out of the file
	File string   `json:"file,omitempty"`
}

// NewClear makes the command clear.
func NewClear() *cobra.Command {
	reason, path := "", ""
	c := &cobra.Command{
		Use:   "clear HOST",
		Short: "Drop what is remembered of a host",
		Long: `clear drops the facts that a host has reported, with what follows from them, such as
that it keeps no record of attempts. None that are older come back; the runbook facts
brings new ones. With --host-key it also takes the keys of the host out of a known_hosts
file on this machine, for a host that was installed anew; muster hosts enroll brings the
new one. While a job has the host, clear refuses. The past of the host stays in history,
and orders about it stay: a drain, a quarantine, a frozen group.`,
		Example: `  muster clear fw001 --reason 'another machine stands there now'
  muster clear fw001 --host-key /etc/muster/known_hosts --reason 'installed anew'`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: complete.Hosts,
	}
	cli.AddReason(c, &reason)
	c.Flags().StringVar(&path, "host-key", "", "take its keys out of this known_hosts `file`, too")
	return cli.Command(c, func(ctx context.Context, s *cli.Session, args []string) error {
		if err := fleet.CheckName(args[0]); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		if err := cli.NeedReason(reason, "another machine stands there now"); err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		return clearHost(ctx, s, args[0], path, reason)
	})
}

func clearHost(ctx context.Context, s *cli.Session, name, path, reason string) error {
	where := "/v1/hosts/" + url.PathEscape(name)
	did := cleared{Keys: []string{}, File: path}
	var book *knownFile
	var h api.HostInfo
	if path != "" { // what is wrong with the file is found before anything is dropped
		err := s.Client.Get(ctx, where, nil, &h)
		if err == nil {
			book, err = readKnownFile(path)
		}
		if err == nil {
			did.Keys, err = book.dropKeys(h.Host)
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, fmt.Errorf("%s", strings.ReplaceAll(err.Error(), "--write",
				"--host-key")))
		}
	}
	if err := s.Order(ctx, where+"/clear", reason, &did.ClearedHost); err != nil {
		return err
	}
	if len(did.Keys) > 0 {
		if err := book.save(); err != nil {
			return fmt.Errorf("its facts are dropped, its keys are not: %s", strings.ReplaceAll(
				err.Error(), "--write", "--host-key"))
		}
	}
	if s.JSON {
		return s.WriteJSON(did)
	}
	return s.Write(clearedText(did))
}

// dropKeys takes the keys of a host out of the lines of the file, and returns their fingerprints.
func (f *knownFile) dropKeys(h fleet.Host) ([]string, error) {
	dropped, name := []string{}, knownName(h)
	var stay []string
	for i, line := range f.lines {
		words := strings.Fields(line)
		if len(words) < 3 || strings.HasPrefix(words[0], "#") || strings.HasPrefix(words[0], "@") ||
			!names(words[0], name) {
			stay = append(stay, line)
			continue
		}
		if strings.ContainsAny(words[0], ",*?!") {
			return nil, fmt.Errorf("%s:%d names other hosts, too: take it out by hand, or write a line "+
				"for each host", f.path, i+1)
		}
		dropped = append(dropped, fingerprintOf(words[1]+" "+words[2]))
	}
	f.lines = stay
	slices.Sort(dropped)
	return dropped, nil
}

func clearedText(d cleared) string {
	lines := []string{"host " + cli.Cell(d.Host) + ": no facts were known"}
	if d.Facts > 0 {
		lines[0] = fmt.Sprintf("host %s: dropped %s of %s", cli.Cell(d.Host), cli.Count(d.Facts, "fact"),
			cli.Moment(d.At))
	}
	switch {
	case d.File == "":
	case len(d.Keys) == 0:
		lines = append(lines, "no key of it is in "+cli.Cell(d.File))
	default:
		lines = append(lines, fmt.Sprintf("taken out of %s: %s; `muster hosts enroll %s --write %[1]s` "+
			"brings the new one", cli.Cell(d.File), cli.Cell(strings.Join(d.Keys, ", ")), cli.Cell(d.Host)))
	}
	return strings.Join(lines, "\n") + "\n"
}

package founding

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"muster/audit"
	"muster/cli"
	"muster/cli/books"
	"muster/internal/files"
	"muster/internal/fit"
	"muster/internal/local"
	"muster/internal/serverkey"
	"muster/internal/settings"
	"muster/trust"
)

// New returns the command init.
func New() *cobra.Command {
	var o flags
	c := &cobra.Command{
		Use:   "init",
		Short: "Make the key of this installation's servers, and what nodes trust",
		Long: `init makes the key that all servers of an installation share, in a file of mode 0400,
and gives the installation a name that no other one has. Tokens hold by that key, and it
signs the audit log: without it a server makes no tokens and accepts none.

The file is /etc/muster/server.key, or ~/.config/muster/server.key for users other than
root and muster; a server finds it there. If root calls init on a machine that has the
user muster, as which the units run, the file belongs to that user. Copy it to every
server, for the user who runs muster there, and to nothing else: no node needs it. init
never changes a file that is there, so a second call does nothing.

Beside it init makes the folder trust, for nodes: policy.yaml, which lets them run only
what a server of this installation has signed; allowed_signers, with the public key of
the servers; and node.key, by which nodes know the state of jobs as their own. Copy the
folder to every node. If the key of servers was there already, the policy only warns:
write require in place of warn when muster events shows no order-doubted any more.

Then init asks the Redis of the configuration whether a server could start with it, and
prints the commands that are missing there. It sets nothing itself.

To change the key, make one with --like in another folder. First add the line of servers
that init prints to allowed_signers of every node. Then put the new key into the file of
every server, below the old one; when all have both, put it above. Take the old key out
when all that it made may end: tokens that were made with it end then, schedules must be
applied again, and tasks of then cannot be retried.

Exit codes: 0 the key is there, 2 it is not.`,
		Example: `  muster init && muster up
  muster init --file /srv/muster/server.key     # named by server.key in muster.yaml
  muster init --file next/server.key --like /etc/muster/server.key  # to change it
  muster init -o json`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		Annotations:       map[string]string{cli.Offline: "yes"},
		RunE:              func(c *cobra.Command, _ []string) error { return o.make(c) },
	}
	c.Flags().StringVar(&o.file, "file", "", "`path` of the key, in place of the usual one")
	c.Flags().StringVar(&o.like, "like", "", "`path` of a key of the same installation")
	c.Flags().StringVar(&o.trust, "trust", "", "`folder` of what nodes trust (default trust, beside "+
		"the key)")
	books.OutputFlag(c, &o.output)
	return c
}

type flags struct{ file, like, trust, output string }

// Made is the answer of init.
type Made struct {
	File         string `json:"file"`
	Installation string `json:"installation"`
	Made         bool   `json:"made"`      // false: it was there
	AuditKey     string `json:"audit_key"` // public, for auditors

	Trust madeTrust `json:"trust"`
	Redis fit.Redis `json:"redis"`
	keys  serverkey.Keys
}

// keyMax bounds what is read of a key that is there.
const keyMax = 64 << 10 // bytes

func (o flags) make(c *cobra.Command) error {
	path, folder := o.file, os.FileMode(0)
	if path == "" {
		path, folder = local.This().ServerKey(), 0o755
	}
	text, err := keyFile(o.like)
	err = errors.Join(err, cli.CheckOutput(o.output))
	if path == "" {
		err = errors.Join(err, errors.New("this user has no home, so there is no usual place for the "+
			"key: name one with --file"))
	}
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	m, err := write(path, text, folder)
	if err == nil {
		err = m.MakeTrust(o.trust)
	}
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	m.Redis = fit.Look(c.Context(), settings.Source{File: os.Getenv("MUSTER_CONFIG"),
		Env: os.Environ()})
	if o.output == cli.OutputJSON {
		return cli.PrintJSON(c.OutOrStdout(), m)
	}
	m.say(c.ErrOrStderr(), o.file != "")
	_, err = fmt.Fprintln(c.OutOrStdout(), m.AuditKey)
	return err
}

// say tells a person what was made; named: not in the usual place.
func (m Made) say(w io.Writer, named bool) {
	if !m.Made {
		fmt.Fprintf(w, "%s is there already: the key of installation %s, which stays as it is\n", m.File,
			m.Installation)
	} else {
		fmt.Fprintf(w, "%s written: the key of the servers of installation %s\ncopy it to every "+
			"server, and to nothing else; a server that runs knows it after a restart\n", m.File,
			m.Installation)
	}
	if m.Trust.Made {
		words := "nodes run only what servers of this installation have signed"
		if m.Trust.Mode != string(trust.Require) {
			words = "nodes run everything, and warn of work that no server of this installation has signed"
		}
		fmt.Fprintf(w, "%s written: %s (mode %s)\ncopy the folder to every node; until its restart a "+
			"node that runs believes Redis\n", m.Trust.Dir, words, m.Trust.Mode)
	}
	if named && m.Made {
		fmt.Fprintf(w, "name both in the configuration: server: {key: %s} and trust: {dir: %s}\n", m.File,
			m.Trust.Dir)
	}
	fmt.Fprintf(w, "the line of the servers in allowed_signers of the nodes:\n%s\n", m.Trust.Signer)
	m.Redis.Say(w)
	fmt.Fprintf(w, "the public key of the audit log, for those who examine it:\n")
}

// MakeKey makes the key of servers of a new installation, unless it is there. The mode is that of a
// folder that is missing; 0: none is made.
func MakeKey(path string, folder os.FileMode) (Made, error) {
	text, err := keyFile("")
	if err != nil {
		return Made{}, err
	}
	return write(path, text, folder)
}

// write writes the file of a key, unless it is there.
func write(path, text string, folder os.FileMode) (Made, error) {
	if folder != 0 {
		if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
			return Made{}, err
		}
	}
	owner := -1
	if folder != 0 {
		owner = serviceUser()
	}
	err := create(path, text, 0o400, owner)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return Made{}, err
	}
	data, mode, readErr := files.Private(path, keyMax)
	if readErr != nil {
		return Made{}, readErr
	}
	keys, parseErr := serverkey.Parse(data)
	if parseErr != nil {
		return Made{}, fmt.Errorf("%s is there already, and is no key of servers: %w", path, parseErr)
	}
	if mode.Perm()&0o077 != 0 {
		return Made{}, fmt.Errorf("%s is there already with mode %04o, so others can use it: is it "+
			"still secret? Then chmod 400 %s; else remove it, and call init again", path, mode.Perm(),
			path)
	}
	public, keyErr := audit.NewKeys(audit.Origin(keys.Installation()),
		keys.Publics(serverkey.Audit)[:1])
	if keyErr != nil {
		return Made{}, keyErr
	}
	return Made{File: path, Installation: keys.Installation(), Made: err == nil,
		AuditKey: public.Texts()[0], keys: keys}, nil
}

// serviceUser returns the user as which the units run servers, if root asks and there is one; -1:
// the file stays ours.
func serviceUser() int {
	if os.Getuid() != 0 {
		return -1
	}
	u, err := user.Lookup("muster")
	if err != nil {
		return -1
	}
	id, err := strconv.Atoi(u.Uid)
	if err != nil {
		return -1
	}
	return id
}

// create writes a new file that is whole once it is there, also after a crash. It belongs to the
// owner; -1: to us. The error wraps os.ErrExist if something has the name.
func create(path, text string, mode os.FileMode, owner int) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".muster-init-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(mode), f.Chown(owner, -1), f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // fails if the name is taken
	}
	return errors.Join(err, os.Remove(f.Name()))
}

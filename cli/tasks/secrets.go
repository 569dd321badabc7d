package tasks

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"muster/cli"
	"muster/internal/seal"
)

// NewSecrets makes the command secrets.
func NewSecrets() *cobra.Command {
	c := &cobra.Command{
		Use:   "secrets",
		Short: "Make the key for secret arguments, check rules for references to secrets",
		Long: `The server seals arguments of type secret before it stores them, and the worker opens
them right before its steps. Both need the same key, in a file that only they can read
and that Redis never sees: secrets.key in the configuration.

References to secrets (--arg NAME=ref:…) need no such key. Each node resolves those
that its own file of rules allows: secrets.references in its configuration.`,
		Example: `  muster secrets keygen /etc/muster/secrets.key
  muster secrets check /etc/muster/references.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSecretsKeygen(), newSecretsCheck())
	return c
}

func newSecretsKeygen() *cobra.Command {
	c := &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key and write it to a file that is not there yet",
		Long: `keygen writes 32 random bytes, in base64 and a line of their own, to a new file of mode
0400. It never overwrites a file: without the old key nobody can open what it sealed.

Give the file to all servers and nodes, each to the user who runs muster there. To change
keys put the new one into a second line everywhere, then make it the first line
everywhere, and take the old one out when no task needs it any more. The file is read
whenever it is needed.

Exit codes: 0 it is written, 2 it is not.`,
		Example: `  muster secrets keygen /etc/muster/secrets.key
  chown muster /etc/muster/secrets.key`,
		Args: cobra.ExactArgs(1),
	}
	c.Annotations = map[string]string{cli.Offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		var raw [seal.KeySize]byte
		rand.Read(raw[:]) // never fails
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%s is there already, and without it nobody can open what it sealed: choose "+
				"another name", args[0])
		}
		if err != nil {
			return cli.Exit(cli.ExitUsage, err)
		}
		_, err = f.WriteString(seal.FormatKey(raw))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return cli.Exit(cli.ExitUsage, errors.Join(err, os.Remove(args[0])))
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s written: name it as secrets.key on all servers and nodes\n",
			args[0])
		return nil
	}
	return c
}

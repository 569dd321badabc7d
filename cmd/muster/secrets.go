package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"muster/api"
	"muster/internal/files"
	"muster/internal/seal"
	"muster/scripts"
)

func newSecrets() *cobra.Command {
	c := &cobra.Command{
		Use:   "secrets",
		Short: "Make the key that secret arguments are sealed with",
		Long: `Arguments of type secret are sealed by the server before they are kept, and opened by
the worker right before its steps. Both need the same key, in a file that only they may
read, and that Redis never sees: secrets.key in the configuration.`,
		Example: `  muster secrets keygen /etc/muster/secrets.key`,
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newSecretsKeygen())
	return c
}

func newSecretsKeygen() *cobra.Command {
	c := &cobra.Command{
		Use:   "keygen FILE",
		Short: "Make a key and write it to a file that is not there yet",
		Long: `keygen writes 32 random bytes, in base64 and a line of their own, to a new file of mode
0400. It never overwrites one: without the old key nothing that it sealed can be opened.

Give the file to all servers and nodes, each to the user who runs muster there. To change
keys put the new one into a second line everywhere, then make it the first line
everywhere, and take the old one out when no task needs it any more. The file is read
whenever it is needed.

Exit codes: 0 it is written, 2 it is not.`,
		Example: `  muster secrets keygen /etc/muster/secrets.key
  chown muster /etc/muster/secrets.key`,
		Args: cobra.ExactArgs(1),
	}
	c.Annotations = map[string]string{offline: "yes"}
	c.RunE = func(c *cobra.Command, args []string) error {
		var raw [seal.KeySize]byte
		rand.Read(raw[:]) // never fails
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
		if errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("%s is there already, and without it nothing opens that it sealed: choose "+
				"another name", args[0])
		}
		if err != nil {
			return exit(exitUsage, err)
		}
		_, err = f.WriteString(seal.FormatKey(raw))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return exit(exitUsage, errors.Join(err, os.Remove(args[0])))
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s written: name it as secrets.key on all servers and nodes\n",
			args[0])
		return nil
	}
	return c
}

// A keyhole asks a person for a secret. nil: there is none to be asked.
type keyhole func(ctx context.Context, name string) (string, error)

// takeSecrets takes the secrets out of the arguments of a run: from files, or from the
// person at the terminal. Only the server knows which arguments are secret, and is asked only
// where that matters.
func (s *session) takeSecrets(ctx context.Context, f *runFlags, runbook string, ask keyhole,
	read func(path string) ([]byte, error)) (map[string]string, error) {
	named := false
	for _, text := range f.args {
		_, value, _ := strings.Cut(text, "=")
		named = named || strings.HasPrefix(value, "@")
	}
	if !named && ask == nil {
		return nil, nil
	}
	list, err := s.runbooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.Name == runbook {
			return f.secrets(ctx, r, ask, read)
		}
	}
	return nil, nil // which the server has words for
}

// secrets reads those of a runbook.
func (f *runFlags) secrets(ctx context.Context, r api.Runbook, ask keyhole,
	read func(path string) ([]byte, error)) (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for _, a := range r.Arguments {
		if a.Type != string(scripts.TypeSecret) {
			continue
		}
		text, found, err := f.takeSecret(a.Name, read)
		if !found && err == nil && ask != nil {
			text, err = ask(ctx, a.Name)
			found = true
		}
		if err != nil {
			errs = append(errs, err)
		}
		if found {
			texts[a.Name] = text
		}
	}
	if len(errs) > 0 {
		return nil, exit(exitUsage, errors.Join(errs...))
	}
	return texts, nil
}

// takeSecret takes one out of --arg. No message repeats what was given.
func (f *runFlags) takeSecret(name string, read func(path string) ([]byte, error)) (text string,
	found bool, err error) {
	var left []string
	for _, one := range f.args {
		rest, ok := strings.CutPrefix(one, name+"=")
		if !ok {
			left = append(left, one)
			continue
		}
		path, isFile := strings.CutPrefix(rest, "@")
		switch {
		case found:
			err = fmt.Errorf("--arg %s: this argument was given already", name)
			continue
		case !isFile:
			err = fmt.Errorf("--arg %s: it is secret, and given so it stands in the list of processes and "+
				"in the history of the shell: give --arg %s=@FILE, or --arg %s=@- for the standard input, or "+
				"leave it out on a terminal, which asks for it", name, name, name)
			continue
		}
		found = true
		content, bad := read(path)
		if bad != nil {
			err = fmt.Errorf("--arg %s: %w", name, bad)
		}
		text = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	}
	f.args = left
	return text, found, err
}

// keyhole asks whoever sits at the terminal; nil: nobody does.
func (s *session) keyhole() keyhole {
	in := int(os.Stdin.Fd())
	if !s.errTerm || s.json || !term.IsTerminal(in) {
		return nil
	}
	return func(ctx context.Context, name string) (string, error) {
		state, err := term.GetState(in)
		if err != nil {
			return "", err
		}
		// Ctrl-C must not leave a terminal without an echo behind.
		stop := context.AfterFunc(ctx, func() { _ = term.Restore(in, state) })
		defer stop()
		fmt.Fprintf(s.err, "%s: ", cell(name))
		text, err := files.Wait(ctx, func() ([]byte, error) { return term.ReadPassword(in) })
		fmt.Fprintln(s.err)
		return string(text), err
	}
}

package submit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"muster/api"
	"muster/cli"
	"muster/internal/files"
	"muster/internal/secretref"
	"muster/scripts"
)

// A keyhole asks a person for a secret. nil: there is no person.
type keyhole func(ctx context.Context, name string) (string, error)

// TakeSecrets takes the secrets out of the arguments of a run: from files, or from the person at
// the terminal. Only the server knows which arguments are secret, and TakeSecrets asks it only if
// that matters.
func (f *RunFlags) TakeSecrets(ctx context.Context, cl *cli.Client, runbook string, ask keyhole,
	read func(path string) ([]byte, error)) (map[string]string, error) {
	named := false
	for _, text := range f.Args {
		_, value, _ := strings.Cut(text, "=")
		named = named || strings.HasPrefix(value, "@")
	}
	if !named && ask == nil {
		return nil, nil
	}
	list, err := cl.Runbooks(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		if r.Name == runbook {
			return f.secrets(ctx, r, ask, read)
		}
	}
	return nil, nil // the server reports that
}

// secrets reads the secrets of a runbook.
func (f *RunFlags) secrets(ctx context.Context, r api.Runbook, ask keyhole,
	read func(path string) ([]byte, error)) (map[string]string, error) {
	texts := map[string]string{}
	var errs []error
	for _, a := range r.Arguments {
		if a.Type != string(scripts.TypeSecret) {
			continue
		}
		if f.refersTo(a.Name) {
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
		return nil, cli.Exit(cli.ExitUsage, errors.Join(errs...))
	}
	return texts, nil
}

// refersTo reports whether --arg gives a reference to a secret, which is no secret.
func (f *RunFlags) refersTo(name string) bool {
	return slices.ContainsFunc(f.Args, func(one string) bool {
		return strings.HasPrefix(one, name+"="+secretref.Mark)
	})
}

// takeSecret takes one secret out of --arg. No message repeats the given text.
func (f *RunFlags) takeSecret(name string, read func(path string) ([]byte, error)) (text string,
	found bool, err error) {
	var left []string
	for _, one := range f.Args {
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
			err = fmt.Errorf("--arg %[1]s: it is secret, and a text here shows in the list of processes "+
				"and in the history of the shell: give --arg %[1]s=@FILE, --arg %[1]s=@- for the standard "+
				"input, --arg %[1]s=ref:REFERENCE, or leave it out on a terminal, which asks for it", name)
			continue
		}
		found = true
		content, bad := read(path)
		if bad != nil {
			err = fmt.Errorf("--arg %s: %w", name, bad)
		}
		text = strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	}
	f.Args = left
	return text, found, err
}

// KeyholeOf returns a keyhole for the person at the terminal, or nil.
func KeyholeOf(s *cli.Screen) keyhole {
	in := int(os.Stdin.Fd())
	if !s.ErrTerm || s.JSON || !term.IsTerminal(in) {
		return nil
	}
	return func(ctx context.Context, name string) (string, error) {
		state, err := term.GetState(in)
		if err != nil {
			return "", err
		}
		// Ctrl-C must not leave the terminal without an echo.
		stop := context.AfterFunc(ctx, func() { _ = term.Restore(in, state) })
		defer stop()
		fmt.Fprintf(s.Err, "%s: ", cli.Cell(name))
		text, err := files.Wait(ctx, func() ([]byte, error) { return term.ReadPassword(in) })
		fmt.Fprintln(s.Err)
		return string(text), err
	}
}

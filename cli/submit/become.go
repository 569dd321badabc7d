package submit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster/internal/secretref"
	"muster/scripts"
)

// WithBecome adds the password of sudo to the secrets of a run. No message repeats the given text:
// it may be the password itself.
func (f *RunFlags) WithBecome(ctx context.Context, secrets map[string]string, ask keyhole,
	read func(path string) ([]byte, error)) (map[string]string, error) {
	if f.become == "" {
		return secrets, nil
	}
	if strings.HasPrefix(f.become, secretref.Mark) {
		if err := secretref.Check(f.become); err != nil {
			return nil, fmt.Errorf("--become-password: %w", err)
		}
		f.Args = append(f.Args, scripts.BecomePassword+"="+f.become)
		return secrets, nil
	}
	text, err := f.becomePassword(ctx, ask, read)
	if err != nil {
		return nil, fmt.Errorf("--become-password: %w", err)
	}
	if secrets == nil {
		secrets = map[string]string{}
	}
	secrets[scripts.BecomePassword] = text
	return secrets, nil
}

func (f *RunFlags) becomePassword(ctx context.Context, ask keyhole,
	read func(path string) ([]byte, error)) (string, error) {
	path, isFile := strings.CutPrefix(f.become, "@")
	switch {
	case isFile && path != "":
		content, err := read(path)
		if err != nil {
			return "", err
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r"), nil
	case f.become != "ask":
		return "", errors.New("a password here shows in the list of processes and in the history of " +
			"the shell: want @FILE, @- for the standard input, ref:REFERENCE, or ask for a question on " +
			"the terminal")
	case f.dry:
		return "", errors.New("a plan asks nobody: give @FILE, or leave it out")
	case ask == nil:
		return "", errors.New("there is no terminal on which somebody could be asked: give @FILE or @-")
	}
	return ask(ctx, "password of sudo")
}

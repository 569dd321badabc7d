package settings

import (
	"errors"
	"fmt"
	"io/fs"

	"muster/fleet"
	"muster/ingress"
	"muster/internal/files"
)

// eventsMax bounds the file of sources.
const eventsMax = 1 << 20 // bytes

// EventSources returns a function that reads the sources of events from a file; it returns nil
// where the file is optional, and is not there. A changed file is in force at once.
func EventSources(a Access) func() (*ingress.Sources, error) {
	if a.File == "" {
		return nil
	}
	w := watched[*ingress.Sources]{setting: "server.events", path: a.File, max: eventsMax, bad: 0o022,
		parse: func(data []byte) (*ingress.Sources, error) {
			return ingress.Parse(fleet.Source{Name: a.File, Data: data})
		}}
	return func() (*ingress.Sources, error) {
		s, err := w.get()
		if a.Optional && errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return s, err
	}
}

// EventSecrets reads the secrets of a source, of a file that only its owner may read. No error
// repeats a secret.
func EventSecrets(s ingress.Source) ([]ingress.Secret, error) {
	data, mode, err := files.Private(s.SecretFile, ingress.SecretsMax)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %w", err)
	}
	if mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("secret_file: %s has mode %04o, so others can use it: chmod 400 it",
			s.SecretFile, mode.Perm())
	}
	list, err := ingress.ParseSecrets(data, s.Form.Proof)
	if err != nil {
		return nil, fmt.Errorf("secret_file: %s: %w", s.SecretFile, err)
	}
	return list, nil
}

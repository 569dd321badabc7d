package settings

import (
	"errors"
	"fmt"
	"io/fs"

	"muster/fleet"
	"muster/internal/files"
	"muster/internal/seal"
	"muster/worker/secrets"
)

// Secrets says what secret arguments are sealed with.
type Secrets struct {
	Key string `mapstructure:"key"` // a file; empty: there are no secret arguments

	// References is a file that says which references to secrets a node resolves; empty: none.
	References string `mapstructure:"references"`

	Credentials string `mapstructure:"-"` // the folder that systemd made for the service
}

// keysMax bounds what is read of a file of keys.
const keysMax = 64 << 10 // bytes

// readKeys reads a file of keys that only its owner may use, and parses it. The setting names the
// file in errors.
func readKeys[K any](setting, path string, parse func([]byte) (K, error)) (K, error) {
	var none K
	data, mode, err := files.Private(path, keysMax)
	if err != nil {
		return none, fmt.Errorf("%s: %w", setting, err)
	}
	if mode.Perm()&0o077 != 0 {
		return none, fmt.Errorf("%s: %s has mode %04o, so others can use it: chmod 400 %s", setting,
			path, mode.Perm(), path)
	}
	keys, err := parse(data)
	if err != nil {
		return none, prefixed(setting+": "+path+": ", err)
	}
	return keys, nil
}

// KeysOf returns a function that reads the keys of secret arguments from a file; nil: there is no
// file. It reads whenever a key is needed, so a changed file is in force at once.
func KeysOf(path string) func() (seal.Keys, error) {
	if path == "" {
		return nil
	}
	return func() (seal.Keys, error) { return readKeys("secrets.key", path, seal.ParseKeys) }
}

// SourcesOf returns a function that reads which references a node resolves; nil: there is no file.
// A changed file is in force at once.
func SourcesOf(path string) func() (*secrets.Config, error) {
	if path == "" {
		return nil
	}
	w := watched[*secrets.Config]{setting: "secrets.references", path: path, max: keysMax, bad: 0o022,
		parse: func(data []byte) (*secrets.Config, error) {
			return secrets.Parse(fleet.Source{Name: path, Data: data})
		}}
	return w.get
}

// validate reads the file once: what is wrong with it is better known at the start.
func (s Secrets) validate() error {
	if s.Key == "" {
		return nil
	}
	_, err := KeysOf(s.Key)()
	return err
}

// present returns a path, or nothing if nothing is there. A file that cannot be looked at counts as
// there: the error of reading it says more.
func present(path string) string {
	if path == "" {
		return ""
	}
	if _, err := files.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	return path
}

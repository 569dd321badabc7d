package settings

import (
	"fmt"

	"muster/internal/files"
	"muster/internal/seal"
)

// Secrets says what secret arguments are sealed with.
type Secrets struct {
	Key string `mapstructure:"key"` // a file; empty: there are no secret arguments
}

// keysMax bounds what is read of a file of keys.
const keysMax = 64 << 10 // bytes

// ReadKeys reads the keys of secret arguments from a file that only its owner may use. It is
// read whenever a key is needed, so a changed file is in force at once.
func ReadKeys(path string) (seal.Keys, error) {
	data, mode, err := files.Private(path, keysMax)
	if err != nil {
		return seal.Keys{}, fmt.Errorf("secrets.key: %w", err)
	}
	if mode.Perm()&0o077 != 0 {
		return seal.Keys{}, fmt.Errorf("secrets.key: %s has mode %04o, so others can use it: "+
			"chmod 400 %s", path, mode.Perm(), path)
	}
	keys, err := seal.ParseKeys(data)
	if err != nil {
		return keys, prefixed("secrets.key: "+path+": ", err)
	}
	return keys, nil
}

// KeysOf reads those of a file whenever it is called; nil: there is no file.
func KeysOf(path string) func() (seal.Keys, error) {
	if path == "" {
		return nil
	}
	return func() (seal.Keys, error) { return ReadKeys(path) }
}

// validate reads the file once: what is wrong with it is better known at the start.
func (s Secrets) validate() error {
	if s.Key == "" {
		return nil
	}
	_, err := ReadKeys(s.Key)
	return err
}

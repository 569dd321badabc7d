package backupfile

import (
	"errors"
	"fmt"
	"strings"

	"filippo.io/age"

	"muster/internal/files"
)

// Recipients can read a backup.
type Recipients []age.Recipient

// Identities read the backups that were made for them.
type Identities []age.Identity

// keysMax bounds a file with keys.
const keysMax = 1 << 20 // bytes

// ParseRecipients reads recipients, as age-keygen prints them, and files of them, one a line. It
// reports all mistakes at once.
func ParseRecipients(list, paths []string) (Recipients, error) {
	var out Recipients
	var errs []error
	for _, text := range list {
		if strings.HasPrefix(strings.ToUpper(text), "AGE-SECRET-KEY-") {
			// The error must not repeat it.
			errs = append(errs, errors.New("--recipient: this is a secret key: want its recipient, "+
				"which `age-keygen -y` prints; make a new key, this one was on a command line"))
			continue
		}
		some, err := age.ParseRecipients(strings.NewReader(text))
		if err != nil {
			errs = append(errs, fmt.Errorf("--recipient %q: want a recipient of age, such as age1…",
				text))
		}
		out = append(out, some...)
	}
	for _, path := range paths {
		text, err := files.Read(path, keysMax)
		if err != nil {
			errs = append(errs, fmt.Errorf("--recipients-file: %w", err))
			continue
		}
		some, err := age.ParseRecipients(strings.NewReader(string(text)))
		if err != nil { // the error of age may quote the line
			errs = append(errs, fmt.Errorf("--recipients-file %s: want recipients of age, such as age1…, "+
				"one a line", path))
		}
		out = append(out, some...)
	}
	if len(errs) == 0 && len(out) == 0 {
		errs = append(errs, errors.New("nobody could read the backup: want --recipient age1… or "+
			"--recipients-file FILE; age-keygen makes a key"))
	}
	return out, errors.Join(errs...)
}

// ReadIdentities reads files of identities, as age-keygen writes them. Nobody but its owner may be
// able to use such a file.
func ReadIdentities(paths []string) (Identities, error) {
	var out Identities
	var errs []error
	for _, path := range paths {
		text, mode, err := files.Private(path, keysMax)
		if err == nil && mode.Perm()&0o077 != 0 {
			err = fmt.Errorf("%s has mode %04o, so others can use it: chmod 400 %s", path, mode.Perm(),
				path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("--identity: %w", err))
			continue
		}
		some, err := age.ParseIdentities(strings.NewReader(string(text)))
		if err != nil { // the error of age may quote the line
			errs = append(errs, fmt.Errorf("--identity: %s is no file of age-keygen", path))
		}
		out = append(out, some...)
	}
	if len(errs) == 0 && len(out) == 0 {
		errs = append(errs, errors.New("want --identity FILE, the key of age that can read the backup"))
	}
	return out, errors.Join(errs...)
}

package secrets

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"muster/fleet"
	"muster/internal/seal"
	"muster/internal/secretref"
	"muster/internal/wording"
)

// secretMax bounds a secret, as it does one that an operator gives.
const secretMax = 64 << 10 // bytes

// Sources resolves references. Its methods may be called by several goroutines.
type Sources struct {
	node        string
	config      func() (*Config, error)
	credentials string

	mu    sync.Mutex
	vault *vault // for the settings in force when it was made; nil: none yet
}

// New returns the sources of a node. config returns the rules in force; nil: the node has none, and
// resolves nothing. credentials is the folder in which systemd puts the credentials of the service;
// empty: there is none.
func New(node string, config func() (*Config, error), credentials string) *Sources {
	return &Sources{node: node, config: config, credentials: credentials}
}

// An Ask asks for the secret of a reference, for a job.
type Ask struct {
	Reference string // without its mark
	Runbook   string
	Host      fleet.Host

	// Signed says why no order holds for the job; nil: one does.
	Signed error
}

// An AwayError is the error of a source that gives no answer now. It may answer later.
type AwayError struct{ Why error }

// Error says what did not answer.
func (e *AwayError) Error() string { return e.Why.Error() }

// Unwrap returns the reason.
func (e *AwayError) Unwrap() error { return e.Why }

// Fetch returns the secret of a reference. The error is an *AwayError if its source does not answer
// now; any other error needs a person. It names the reference and the node, and is one line.
func (s *Sources) Fetch(ctx context.Context, a Ask) (seal.Text, error) {
	text, shown, err := s.fetch(ctx, a)
	if err == nil {
		err = check(text)
	}
	if err != nil {
		return "", fmt.Errorf("%s on node %s: %w", shown, s.node, line(err))
	}
	return text, nil
}

// lineError has its text on one line.
type lineError struct{ error }

func (e lineError) Error() string { return wording.ErrorLine(e.error) }
func (e lineError) Unwrap() error { return e.error }

func line(err error) error { return lineError{err} }

// check returns an error if a text cannot be a secret.
func check(text seal.Text) error {
	switch {
	case text == "":
		return errors.New("the secret is empty")
	case len(text) > secretMax:
		return fmt.Errorf("the secret has more than %d bytes", secretMax)
	case !utf8.ValidString(string(text)) || strings.ContainsRune(string(text), 0):
		return errors.New("the secret is no text: it is not UTF-8, or has a NUL")
	}
	return nil
}

// fetch returns the secret, and the reference as far as it can be shown.
func (s *Sources) fetch(ctx context.Context, a Ask) (text seal.Text, shown string, err error) {
	shown = "a reference"
	ref, err := secretref.Parse(a.Reference)
	if err != nil {
		return "", shown, err
	}
	shown = ref.String()
	cfg, err := s.rules()
	switch {
	case err != nil:
		return "", shown, err
	case a.Signed != nil && !cfg.Unsigned:
		return "", shown, fmt.Errorf("no signed order holds for the job, so whoever writes to Redis "+
			"could have asked for the secret: %w", a.Signed)
	}
	if ref, err = ref.Fill(valuesOf(a.Host)); err != nil {
		return "", shown, err
	}
	shown = ref.String()
	pattern, err := cfg.allows(ref, a)
	if err != nil {
		return "", shown, err
	}
	switch ref.Source {
	case secretref.File:
		text, err = readFile(pattern.Root(), ref.Path)
	case secretref.Credential:
		text, err = s.credential(ref.Path)
	case secretref.Age:
		text, err = readAge(cfg.Identities, pattern.Root(), ref)
	case secretref.Vault:
		text, err = s.fromVault(ctx, cfg, ref)
	}
	return text, shown, err
}

// rules returns the rules in force.
func (s *Sources) rules() (*Config, error) {
	if s.config == nil {
		return nil, errors.New("this node resolves no references: write a file with rules, and name it " +
			"as secrets.references in its configuration")
	}
	return s.config()
}

// fromVault reads a secret by a client with the settings in force.
func (s *Sources) fromVault(ctx context.Context, cfg *Config, ref secretref.Ref) (seal.Text,
	error) {
	if cfg.Vault == nil {
		return "", fmt.Errorf("%s has no vault: add its address and a login", cfg.file)
	}
	s.mu.Lock()
	if s.vault == nil || s.vault.cfg != cfg.Vault {
		s.vault = newVault(cfg.Vault)
	}
	v := s.vault
	s.mu.Unlock()
	return v.secret(ctx, ref)
}

// Close gives back the token that Vault has issued, as far as Vault answers.
func (s *Sources) Close(ctx context.Context) {
	s.mu.Lock()
	v := s.vault
	s.mu.Unlock()
	if v != nil {
		v.revoke(ctx)
	}
}

// valuesOf returns the values of a host for placeholders.
func valuesOf(h fleet.Host) secretref.Values {
	return func(name string) (string, error) {
		label, isLabel := strings.CutPrefix(name, "host.label.")
		v := map[string]string{"host.name": h.Name, "host.customer": h.Customer}[name]
		if isLabel {
			v = h.Labels[label]
		}
		if v == "" {
			return "", fmt.Errorf("host %s has none: give it one in the inventory", h.Name)
		}
		return v, nil
	}
}

package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"muster/internal/wording"
)

// CheckHostKey returns an error unless line is a usable host key of an inventory, such as
// "ssh-ed25519 AAAA…", with or without a comment.
func CheckHostKey(line string) error {
	key, err := parseHostKey(line)
	if err == nil && len(algorithmsOf(key, false)) == 0 {
		return unusable(key)
	}
	return err
}

func unusable(key ssh.PublicKey) error {
	return fmt.Errorf("host key of type %s cannot be used: give one of type ssh-ed25519, "+
		"ecdsa-sha2-nistp256 or ssh-rsa", key.Type())
}

func parseHostKey(line string) (ssh.PublicKey, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return nil, fmt.Errorf("host key %q cannot be read (%w): write it like \"ssh-ed25519 AAAA…\"",
			wording.Clip(line), err)
	case len(options) > 0 || len(bytes.TrimSpace(rest)) > 0:
		return nil, fmt.Errorf("host key %q is more than one key: write it like \"ssh-ed25519 AAAA…\"",
			wording.Clip(line))
	case len(algorithmsOf(key, true)) == 0:
		return nil, unusable(key)
	}
	return key, nil
}

// errNoHostKey means that neither a key nor an authority is known for a host.
var errNoHostKey = errors.New("the inventory has no host key for it: put one there, " +
	"as host_key, host_ca or in its known_hosts file")

// hostKeys is a list of public keys.
type hostKeys []ssh.PublicKey

// parsedMax bounds how many parsed keys are kept: those of 20,000 hosts take 4 MB.
const parsedMax = 20_000

// parsed caches parsed host keys, because hosts share jump hosts and authorities, and a
// worker connects to the same hosts repeatedly.
type parsed struct {
	mu   sync.Mutex
	keys map[string]ssh.PublicKey // guarded by mu
}

func (p *parsed) all(lines []string) (hostKeys, error) {
	var keys hostKeys
	var errs []error
	for _, line := range lines {
		key, err := p.one(line)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}

func (p *parsed) one(line string) (ssh.PublicKey, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if key, known := p.keys[line]; known {
		return key, nil
	}
	key, err := parseHostKey(line)
	if err != nil {
		return nil, err
	}
	if p.keys == nil || len(p.keys) >= parsedMax {
		p.keys = make(map[string]ssh.PublicKey)
	}
	p.keys[line] = key
	return key, nil
}

// dsa is a key type that only the oldest appliances have.
const dsa = "ssh-dss"

// algorithmsOf returns the acceptable signature algorithms for a key. An RSA key must not
// prove itself with SHA-1, which its plain type name stands for, except with the legacy
// profile.
func algorithmsOf(key ssh.PublicKey, legacy bool) []string {
	var names []string
	switch key.Type() {
	case ssh.KeyAlgoRSA:
		names = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return []string{key.Type()}
	case dsa:
	default:
		return nil
	}
	if legacy {
		names = append(names, key.Type())
	}
	return names
}

// String returns the keys as a list of types and fingerprints.
func (k hostKeys) String() string {
	var all []string
	for _, key := range k {
		all = append(all, describe(key))
	}
	return strings.Join(all, ", ")
}

func describe(key ssh.PublicKey) string {
	return key.Type() + " " + ssh.FingerprintSHA256(key)
}

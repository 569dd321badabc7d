package remote

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// CheckHostKey tells what is wrong with one host key of an inventory, which
// reads like "ssh-ed25519 AAAA…", with or without a comment.
func CheckHostKey(line string) error {
	_, err := parseHostKey(line)
	return err
}

func parseHostKey(line string) (ssh.PublicKey, error) {
	key, _, options, rest, err := ssh.ParseAuthorizedKey([]byte(line))
	switch {
	case err != nil:
		return nil, fmt.Errorf("host key %q cannot be read (%w): write it like \"ssh-ed25519 AAAA…\"",
			shorten(line), err)
	case len(options) > 0 || len(bytes.TrimSpace(rest)) > 0:
		return nil, fmt.Errorf("host key %q is more than one key: write it like \"ssh-ed25519 AAAA…\"",
			shorten(line))
	case len(algorithmsOf(key)) == 0:
		return nil, fmt.Errorf("host key of type %s cannot be used: give one of type ssh-ed25519, "+
			"ecdsa-sha2-nistp256 or ssh-rsa", key.Type())
	}
	return key, nil
}

// hostKeys are the keys by which a host is known.
type hostKeys []ssh.PublicKey

func parseHostKeys(lines []string) (hostKeys, error) {
	if len(lines) == 0 {
		return nil, errors.New("the inventory has no host key for it: put one there, " +
			"as host_key or in its known_hosts file")
	}
	var keys hostKeys
	var errs []error
	for _, line := range lines {
		key, err := parseHostKey(line)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys = append(keys, key)
	}
	return keys, errors.Join(errs...)
}

// algorithms lists what the host may prove itself with. Without such a list a
// host that has several keys shows the one the library likes best, which need
// not be the one that is known, and looks like an impostor.
func (k hostKeys) algorithms() []string {
	var all []string
	for _, key := range k {
		all = append(all, algorithmsOf(key)...)
	}
	return all
}

// algorithmsOf names the signatures that are good enough for a key: an RSA key
// must not prove itself with SHA-1, which is what its plain type name means.
func algorithmsOf(key ssh.PublicKey) []string {
	switch key.Type() {
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return []string{key.Type()}
	}
	return nil
}

// check accepts offered only if it is one of the known keys.
func (k hostKeys) check(offered ssh.PublicKey) error {
	blob := offered.Marshal()
	for _, key := range k {
		if bytes.Equal(key.Marshal(), blob) {
			return nil
		}
	}
	return &hostKeyError{known: k, offered: offered}
}

// hostKeyError is a host that shows a key nobody vouched for.
type hostKeyError struct {
	known   hostKeys
	offered ssh.PublicKey
}

func (e *hostKeyError) Error() string {
	return fmt.Sprintf("its host key is %s, the inventory has %s: the connection was refused; "+
		"if the host was reinstalled, put its new key into the inventory",
		describe(e.offered), e.known)
}

// String lists the keys that have been vouched for.
func (k hostKeys) String() string {
	var all []string
	for _, key := range k {
		all = append(all, describe(key))
	}
	return strings.Join(all, ", ")
}

// types lists the types of the keys, for a host that has none of these.
func (k hostKeys) types() string {
	var all []string
	for _, key := range k {
		all = append(all, key.Type())
	}
	return strings.Join(all, ", ")
}

func describe(key ssh.PublicKey) string {
	return key.Type() + " " + ssh.FingerprintSHA256(key)
}

// shorten keeps error texts readable when what they quote is long.
func shorten(s string) string {
	const most = 40
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

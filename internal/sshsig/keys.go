package sshsig

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"muster/internal/wording"
)

// rsaMin is the length of a key of RSA, in bits, below which its signatures prove too little.
const rsaMin = 2048

// dss is the type of DSA keys, and certSuffix ends the types of certificates.
const (
	dss        = "ssh-dss"
	certSuffix = "-cert-v01@openssh.com"
)

// algorithms has the types of keys that may sign, and the algorithms of signatures for each.
var algorithms = map[string][]string{
	ssh.KeyAlgoED25519:    {ssh.KeyAlgoED25519},
	ssh.KeyAlgoECDSA256:   {ssh.KeyAlgoECDSA256},
	ssh.KeyAlgoECDSA384:   {ssh.KeyAlgoECDSA384},
	ssh.KeyAlgoECDSA521:   {ssh.KeyAlgoECDSA521},
	ssh.KeyAlgoRSA:        {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	ssh.KeyAlgoSKED25519:  {ssh.KeyAlgoSKED25519},
	ssh.KeyAlgoSKECDSA256: {ssh.KeyAlgoSKECDSA256, algoWebAuthn},
}

// isSecurityKey reports whether keys of this type are in a device that a person touches.
func isSecurityKey(kind string) bool {
	return kind == ssh.KeyAlgoSKED25519 || kind == ssh.KeyAlgoSKECDSA256
}

// isType reports whether a word is the type of a key, also of one that is refused.
func isType(word string) bool {
	return algorithms[word] != nil || word == dss || strings.HasSuffix(word, certSuffix)
}

// checkType says why keys of a type may not sign; nil: they may.
func checkType(kind string) error {
	switch {
	case algorithms[kind] != nil:
		return nil
	case strings.HasSuffix(kind, certSuffix):
		return errors.New("the key is a certificate, and certificates are not supported here: sign " +
			"with the plain key, and list that one")
	case kind == dss:
		return errors.New("the key is one of DSA, which is too weak: make one with " +
			"`ssh-keygen -t ed25519`")
	}
	return fmt.Errorf("keys of type %s are not supported: want one of %s", wording.Quote(kind),
		strings.Join(slices.Sorted(maps.Keys(algorithms)), ", "))
}

// parseKey reads a public key that may sign from the form that it has on the wire.
func parseKey(data []byte) (ssh.PublicKey, error) {
	var head struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(data, &head); err != nil {
		return nil, errors.New("the key is cut: want it as it is in its file .pub")
	}
	if err := checkType(head.Type); err != nil {
		return nil, err // before the library, which would repeat a hostile type as it is
	}
	key, err := ssh.ParsePublicKey(data)
	if err != nil {
		return nil, fmt.Errorf("the key is damaged: want it as it is in its file .pub: %w", err)
	}
	if isShort(key) {
		return nil, fmt.Errorf("the RSA key is too short: want %d bits or more, or make one with "+
			"`ssh-keygen -t ed25519`", rsaMin)
	}
	return key, nil
}

// isShort reports whether a key, which the library made, is one of RSA with too few bits.
func isShort(key ssh.PublicKey) bool {
	if key.Type() != ssh.KeyAlgoRSA {
		return false
	}
	public := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*rsa.PublicKey)
	return public.N.Sign() <= 0 || public.N.BitLen() < rsaMin
}

package sshsig

import (
	"crypto/sha256"
	"crypto/sha512"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"muster/internal/wording"
)

const (
	version = 1 // of the format

	// nameMax is the longest namespace, pattern or principal, in bytes.
	nameMax = 255

	// The flags in the signature of a security key: its user touched it, and proved who they are.
	flagPresent  = 0x01
	flagVerified = 0x04

	// flagsSize is the size of these flags and of the counter behind them, in bytes.
	flagsSize = 5
)

// magic begins each signature, and all that is signed. It never begins what a client signs to log
// in, so that neither can be taken for the other.
var magic = [6]byte{'S', 'S', 'H', 'S', 'I', 'G'}

// hashes are those that a signature may have of its message.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// A Signature is one that [Parse] read. It proves nothing until Verify has returned nil.
type Signature struct {
	Key       ssh.PublicKey // the key that it claims to be made with
	Namespace string        // the purpose that it claims to be made for

	hash string
	sig  *ssh.Signature
}

// blob is a signature as bytes.
type blob struct {
	Magic     [6]byte
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  string
	Hash      string
	Signature []byte
}

// signed are the bytes that a key signs.
type signed struct {
	Magic     [6]byte
	Namespace string
	Reserved  string
	Hash      string
	Sum       []byte
}

// Parse reads the text of a signature. It refuses all that no key could have made which may sign,
// and says what it wanted. The reserved field is ignored, as the protocol asks.
func Parse(armored []byte) (*Signature, error) {
	data, err := dearmor(armored)
	if err != nil {
		return nil, err
	}
	var b blob
	if err := ssh.Unmarshal(data, &b); err != nil {
		return nil, errors.New("the signature is cut, or something follows it: want it as it was made")
	}
	if b.Magic != magic || b.Version != version {
		return nil, fmt.Errorf("the signature is of a format that is not known here: want version %d, "+
			"as `ssh-keygen -Y sign` makes it", version)
	}
	key, err := parseKey(b.Key)
	if err != nil {
		return nil, err
	}
	if err := checkName("namespace of the signature", b.Namespace); err != nil {
		return nil, err
	}
	if hashes[b.Hash] == nil {
		return nil, fmt.Errorf("the signature has the hash %s: want sha512 or sha256",
			wording.Quote(b.Hash))
	}
	sig, err := parseInner(key.Type(), b.Signature)
	if err != nil {
		return nil, err
	}
	if siteOnly(key) && sig.Format != algoWebAuthn {
		return nil, errors.New("the key is for a site, and no browser has made the signature: nobody " +
			"can say whether its user was asked for a PIN or a finger; sign on the page of the task")
	}
	return &Signature{Key: key, Namespace: b.Namespace, hash: b.Hash, sig: sig}, nil
}

// parseInner reads the signature proper, which a key of this type made.
func parseInner(kind string, data []byte) (*ssh.Signature, error) {
	var sig ssh.Signature
	if err := ssh.Unmarshal(data, &sig); err != nil {
		return nil, errors.New("the signature within is cut: want it as it was made")
	}
	if !slices.Contains(algorithms[kind], sig.Format) {
		why := ""
		if sig.Format == ssh.KeyAlgoRSA {
			why = ", because that has the hash SHA-1"
		}
		return nil, fmt.Errorf("the signature is of the algorithm %s: want %s of a key of type %s%s",
			wording.Quote(sig.Format), strings.Join(algorithms[kind], " or "), kind, why)
	}
	if sig.Format == algoWebAuthn {
		_, err := browserEnd(sig.Rest)
		return &sig, err
	}
	want := 0
	if isSecurityKey(kind) {
		want = flagsSize
	}
	if len(sig.Rest) != want {
		return nil, fmt.Errorf("the signature within ends with %s: want %d", wording.Count(
			len(sig.Rest), "byte"), want)
	}
	return &sig, nil
}

// Verify says why this is no signature of the message for this namespace by s.Key; nil: it is one.
// A security key must have seen a touch. Whose key it is, and if it may sign, is for [Allowed] to
// say.
func (s *Signature) Verify(namespace string, message []byte) error {
	if err := checkName("namespace", namespace); err != nil {
		return err
	}
	if s.Namespace != namespace {
		return fmt.Errorf("the signature is for the namespace %s, want %s: sign anew, with that one "+
			"behind -n", wording.Quote(s.Namespace), wording.Quote(namespace))
	}
	if isSecurityKey(s.Key.Type()) && s.sig.Rest[0]&flagPresent == 0 {
		return errors.New("nobody touched the security key for this signature: sign anew, with a key " +
			"that was made without no-touch-required")
	}
	verify := s.Key.Verify
	if s.sig.Format == algoWebAuthn {
		verify = func(data []byte, sig *ssh.Signature) error { return verifyBrowser(s.Key, sig, data) }
	}
	if err := verify(toSign(namespace, s.hash, message), s.sig); err != nil {
		return fmt.Errorf("the key %s did not sign this: want the message as it was when it was signed, "+
			"to the last byte: %w", ssh.FingerprintSHA256(s.Key), err)
	}
	return nil
}

// UserVerified reports whether a security key checked its user for this signature, by a PIN or a
// finger, beside the touch. It is false for all other keys, and counts only after Verify.
func (s *Signature) UserVerified() bool {
	return isSecurityKey(s.Key.Type()) && s.sig.Rest[0]&flagVerified != 0
}

// toSign returns the bytes that a key signs for a message. The hash is one of hashes.
func toSign(namespace, hash string, message []byte) []byte {
	h := hashes[hash]()
	h.Write(message) // never fails
	return ssh.Marshal(signed{Magic: magic, Namespace: namespace, Hash: hash, Sum: h.Sum(nil)})
}

// checkName says what is wrong with a namespace, a pattern or a principal.
func checkName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("the %s is empty: want a text", what)
	case len(name) > nameMax:
		return fmt.Errorf("the %s has %d bytes: want at most %d", what, len(name), nameMax)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isHidden):
		return fmt.Errorf("the %s %s has characters that cannot be seen: want letters, digits and signs",
			what, wording.Quote(name))
	}
	return nil
}

func isHidden(r rune) bool { return !unicode.IsPrint(r) }

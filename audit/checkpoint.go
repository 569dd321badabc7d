package audit

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Checkpoint says what the tree was at an instant. It is signed as a note: see
// https://c2sp.org/tlog-checkpoint.
type Checkpoint struct {
	Origin string // of the log: see Origin
	Size   int64
	Root   Hash
	At     Time
}

// Origin returns the name of the log of an installation.
func Origin(installation string) string { return "muster-audit/" + installation }

// timeLine begins the line of a checkpoint that has its time.
const timeLine = "at "

// Text returns the part of a checkpoint that is signed.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n%s%s\n", c.Origin, c.Size,
		base64.StdEncoding.EncodeToString(c.Root[:]), timeLine, c.At.UTC().Format(timeForm))
}

// ParseCheckpoint reads what Text returns, and nothing else.
func ParseCheckpoint(text string) (Checkpoint, error) {
	var c Checkpoint
	bad := func(what string) (Checkpoint, error) {
		return Checkpoint{}, fmt.Errorf("checkpoint: want %s", what)
	}
	lines := strings.Split(text, "\n")
	if len(lines) != 5 || lines[4] != "" {
		return bad("4 lines: origin, size, hash, time")
	}
	c.Origin = lines[0]
	if c.Origin == "" {
		return bad("an origin in line 1")
	}
	var err error
	if c.Size, err = strconv.ParseInt(lines[1], 10, 64); err != nil || c.Size < 0 {
		return bad("a number of entries in line 2")
	}
	if c.Root, err = tlog.ParseHash(lines[2]); err != nil {
		return bad("a hash in line 3")
	}
	at, found := strings.CutPrefix(lines[3], timeLine)
	if !found || json.Unmarshal([]byte(strconv.Quote(at)), &c.At) != nil {
		return bad("`at " + timeForm + "` in line 4")
	}
	if c.Text() != text {
		return bad("the one form of each line")
	}
	return c, nil
}

// A Signer signs entries and checkpoints by the key of a server.
type Signer struct {
	name string
	key  crypto.Signer
	pub  ed25519.PublicKey
}

// NewSigner returns a Signer by an Ed25519 key. The origin is that of the log.
func NewSigner(origin string, key crypto.Signer) (*Signer, error) {
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("the key is a %T: want Ed25519", key.Public())
	}
	s := &Signer{origin, key, pub}
	if _, err := note.NewEd25519VerifierKey(origin, pub); err != nil {
		return nil, fmt.Errorf("origin %q: %w", origin, err)
	}
	return s, nil
}

// Origin returns the name of the log.
func (s *Signer) Origin() string { return s.name }

// VerifierKey returns the public key as text. It checks all that the Signer signs.
func (s *Signer) VerifierKey() string {
	text, _ := note.NewEd25519VerifierKey(s.name, s.pub) // NewSigner has tried it
	return text
}

// Checkpoint returns a signed checkpoint.
func (s *Signer) Checkpoint(c Checkpoint) (string, error) {
	msg, err := note.Sign(&note.Note{Text: c.Text()}, noteSigner{s})
	return string(msg), err
}

// entryContext stands before a leaf when it is signed, so that no signature of an entry can pass
// for one of another thing.
const entryContext = "muster-audit entry\n"

// Entry returns the signature of a leaf.
func (s *Signer) Entry(leaf []byte) (string, error) {
	sig, err := s.sign(append([]byte(entryContext), leaf...))
	return base64.StdEncoding.EncodeToString(sig), err
}

func (s *Signer) sign(msg []byte) ([]byte, error) {
	return s.key.Sign(rand.Reader, msg, crypto.Hash(0))
}

// noteSigner is a Signer as package note wants it.
type noteSigner struct{ s *Signer }

// Name is that of the key.
func (n noteSigner) Name() string { return n.s.name }

// KeyHash is that of the key, as package note computes it.
func (n noteSigner) KeyHash() uint32 {
	h := sha256.Sum256(append([]byte(n.s.name+"\n\x01"), n.s.pub...))
	return binary.BigEndian.Uint32(h[:4])
}

// Sign signs a note.
func (n noteSigner) Sign(msg []byte) ([]byte, error) { return n.s.sign(msg) }

// A Keyring returns the key by which a server signs now, nil if it has none, and the public keys of
// all that it has, so that a key can be changed while servers run.
type Keyring func() (*Signer, Keys, error)

// NoKeys is the keyring of a server without keys.
func NoKeys() (*Signer, Keys, error) { return nil, Keys{}, nil }

// Keys are public keys of servers, which check signatures. The zero value has none.
type Keys struct {
	texts     []string
	verifiers []note.Verifier
	raw       []ed25519.PublicKey
}

// ParseKeys reads public keys as Signer.VerifierKey returns them.
func ParseKeys(texts []string) (Keys, error) {
	var k Keys
	var errs []error
	for _, text := range texts {
		v, err := note.NewVerifier(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("key %.80q: want NAME+HASH+KEY, as `muster audit "+
				"status` prints it", text))
			continue
		}
		data := lastPart(text) // one byte for the algorithm, and the key
		if len(data) != 1+ed25519.PublicKeySize {
			errs = append(errs, fmt.Errorf("key %.80q: want an Ed25519 key", text))
			continue
		}
		k.texts, k.verifiers = append(k.texts, text), append(k.verifiers, v)
		k.raw = append(k.raw, ed25519.PublicKey(data[1:]))
	}
	return k, errors.Join(errs...)
}

// lastPart decodes the part of a verifier key behind name and hash.
func lastPart(text string) []byte {
	parts := strings.SplitN(text, "+", 3)
	if len(parts) != 3 {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(parts[2])
	if err != nil {
		return nil
	}
	return data
}

// NewKeys returns public keys of the log of an origin.
func NewKeys(origin string, list []ed25519.PublicKey) (Keys, error) {
	texts := make([]string, len(list))
	for i, pub := range list {
		var err error
		if texts[i], err = note.NewEd25519VerifierKey(origin, pub); err != nil {
			return Keys{}, fmt.Errorf("origin %q: %w", origin, err)
		}
	}
	return ParseKeys(texts)
}

// Texts returns the keys as texts.
func (k Keys) Texts() []string { return k.texts }

// None reports whether there is no key.
func (k Keys) None() bool { return len(k.raw) == 0 }

// Open checks a signed checkpoint. It accepts one that any of the keys has signed.
func (k Keys) Open(signed string) (Checkpoint, error) {
	n, err := note.Open([]byte(signed), note.VerifierList(k.verifiers...))
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: its signature does not hold: %w", err)
	}
	c, err := ParseCheckpoint(n.Text)
	if err != nil {
		return c, err
	}
	if c.Origin != n.Sigs[0].Name {
		return c, fmt.Errorf("checkpoint of %q, signed for %q", c.Origin, n.Sigs[0].Name)
	}
	return c, nil
}

// Signed reports whether one of the keys has signed a leaf.
func (k Keys) Signed(leaf []byte, signature string) bool {
	sig, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(sig) != ed25519.SignatureSize {
		return false
	}
	msg := append([]byte(entryContext), leaf...)
	for _, pub := range k.raw {
		if ed25519.Verify(pub, msg, sig) {
			return true
		}
	}
	return false
}

// SplitNotes cuts a text into signed notes: each ends with lines that begin with a dash, and other
// lines of the text, which are empty, are left out.
func SplitNotes(text string) []string {
	var list []string
	var now strings.Builder
	signed := false
	for line := range strings.Lines(text) {
		is := strings.HasPrefix(line, "— ")
		if signed && !is {
			list, signed = append(list, now.String()), false
			now.Reset()
		}
		if now.Len() == 0 && strings.TrimSpace(line) == "" {
			continue
		}
		now.WriteString(line)
		signed = is
	}
	if now.Len() > 0 {
		list = append(list, now.String())
	}
	return list
}

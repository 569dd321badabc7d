package ingress

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"time"
)

// BodyMax bounds the body of an event.
const BodyMax = 1 << 20 // bytes

// A Message is what arrives, before anybody has looked at it.
type Message struct {
	// Header returns the values of a header.
	Header func(name string) []string
	Body   []byte // as it came
	At     time.Time
}

// one returns the only value of a header. A header that is there twice proves nothing, because
// nobody knows which of the two another program on the way has read.
func (m Message) one(name string) (string, bool) {
	values := m.Header(name)
	if len(values) != 1 || values[0] == "" {
		return "", false
	}
	return values[0], true
}

// Why says why a message is no event.
type Why string

// The reasons. Strangers are not told the first four.
const (
	Unknown   Why = "source"    // there is no such source
	Unproven  Why = "proof"     // a header is missing that the proof needs
	Wrong     Why = "signature" // the signature or the token is another
	Late      Why = "time"      // it is older than the sender may be late, or of the future
	TooLarge  Why = "size"
	NotJSON   Why = "json"
	NoName    Why = "customer" // the body names no customer, and the source says where one must be
	NoKind    Why = "kind"     // the kind has other characters than a kind may have
	Flooded   Why = "flood"    // the source has sent more than its bounds let through
	Unsecured Why = "secret"   // our own secret cannot be read
)

// Whys returns all reasons.
func Whys() []Why {
	return []Why{Unknown, Unproven, Wrong, Late, TooLarge, NotJSON, NoName, NoKind, Flooded,
		Unsecured}
}

// hashes are the hashes of MACs.
var hashes = map[string]func() hash.Hash{"sha256": sha256.New, "sha512": sha512.New}

// Verify returns why a message was not sent by who shares one of the secrets; empty: it was. The
// time that it takes depends neither on the right part of a signature or a token, nor on the
// secret that was meant.
func (f Form) Verify(m Message, secrets []Secret) Why {
	if f.Proof == Printed {
		return Unknown
	}
	if len(m.Body) > BodyMax {
		return TooLarge
	}
	if len(secrets) == 0 {
		return Unsecured
	}
	given, ok := m.one(f.Header)
	if !ok {
		return Unproven
	}
	var right int
	switch f.Proof {
	case HMAC:
		right = f.macs(given, m.Body, secrets)
	case Signed:
		return f.signed(given, m, secrets)
	case Token:
		token, ok := cutPrefix(given, f.Prefix)
		if !ok {
			return Unproven
		}
		for _, s := range secrets {
			right |= same([]byte(token), s)
		}
	case Basic:
		text, ok := cutPrefix(given, "Basic ")
		raw, err := base64.StdEncoding.DecodeString(text)
		if !ok || err != nil {
			return Unproven
		}
		for _, s := range secrets {
			right |= same(raw, []byte(f.User+":"+string(s)))
		}
	}
	if right != 1 {
		return Wrong
	}
	return f.late(m)
}

// cutPrefix is strings.CutPrefix for the first word of a header, which has no case.
func cutPrefix(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	return text[len(prefix):], true
}

// same compares two texts, of which one is a secret. Their hashes have one length, so that nobody
// learns the length of the secret.
func same(a, b []byte) int {
	x, y := sha256.Sum256(a), sha256.Sum256(b)
	return subtle.ConstantTimeCompare(x[:], y[:])
}

// macs returns 1 if a text is the MAC of a content under one of the secrets.
func (f Form) macs(text string, content []byte, secrets []Secret) int {
	text, ok := strings.CutPrefix(text, f.Prefix)
	if !ok {
		return 0
	}
	var given []byte
	var err error
	if f.Encoding == "base64" {
		given, err = base64.StdEncoding.DecodeString(text)
	} else {
		given, err = hex.DecodeString(text)
	}
	if err != nil {
		return 0
	}
	right := 0
	for _, s := range secrets {
		mac := hmac.New(hashes[f.Hash], s)
		mac.Write(content)
		right |= subtle.ConstantTimeCompare(given, mac.Sum(nil))
	}
	return right
}

// signaturesMax bounds the signatures of one delivery: senders that change their key give two.
const signaturesMax = 8

// signed checks a list of signatures over id, time and body.
func (f Form) signed(list string, m Message, secrets []Secret) Why {
	id, known := m.one(f.ID)
	at, timed := m.one(f.Time)
	words := strings.Fields(list)
	if !known || !timed || strings.Contains(id, ".") || len(words) > signaturesMax {
		return Unproven
	}
	content := bytes.Join([][]byte{[]byte(id), []byte(at), m.Body}, []byte("."))
	right := 0
	for _, word := range words {
		if text, ours := strings.CutPrefix(word, "v1,"); ours {
			right |= f.macs(text, content, secrets)
		}
	}
	if right != 1 {
		return Wrong
	}
	return f.late(m)
}

// late says whether a message is too old, where its sender says the time.
func (f Form) late(m Message) Why {
	if f.Time == "" {
		return ""
	}
	text, ok := m.one(f.Time)
	seconds, err := strconv.ParseInt(text, 10, 64)
	if !ok || err != nil {
		return Late
	}
	age := m.At.Sub(time.Unix(seconds, 0))
	if age > f.Tolerance || age < -f.Tolerance {
		return Late
	}
	return ""
}

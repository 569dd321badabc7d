package seal

import (
	"bytes"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

const (
	// KeySize is the size of a key, in bytes.
	KeySize = 32

	// Mask stands for a secret wherever one is shown.
	Mask = "(secret)"

	version = "s1" // of the form: version.key.base64
	idSize  = 4    // bytes that tell keys apart
	block   = 64   // a text is filled up to a multiple of it
	keysMax = 16
)

// encoding is that of keys in their file and of what is sealed.
var encoding = base64.RawURLEncoding

// Text is a secret in memory. It is shown as Mask by whatever prints or encodes it.
type Text string

// Format writes Mask, whatever the verb is.
func (Text) Format(f fmt.State, _ rune) { fmt.Fprint(f, Mask) }

// MarshalText is Mask.
func (Text) MarshalText() ([]byte, error) { return []byte(Mask), nil }

// CheckLine returns an error unless the text is one line, for a secret whose next line somebody
// would read as something else.
func (t Text) CheckLine() error {
	switch {
	case t == "":
		return errors.New("is empty")
	case strings.ContainsAny(string(t), "\n\r\x00"):
		return errors.New("has more than one line")
	}
	return nil
}

// Keys open what was sealed with any of them. The first one seals.
type Keys struct{ list []key }

// Format writes Mask, whatever the verb is.
func (Keys) Format(f fmt.State, _ rune) { fmt.Fprint(f, Mask) }

// key is one key, and what is made of it.
type key struct {
	id            string // hex
	cipher, nonce []byte
}

// ParseKeys reads the file of keys: see ParseLines.
func ParseKeys(data []byte) (Keys, error) {
	raws, err := ParseLines(data, "muster secrets keygen")
	if err != nil {
		return Keys{}, err
	}
	var k Keys
	for _, raw := range raws {
		k.list = append(k.list, newKey(raw))
	}
	return k, nil
}

// ParseLines reads keys of KeySize bytes: one a line, in base64; blank lines and lines that begin
// with # do not count. It reports all mistakes at once, names the command that makes such a file,
// and repeats none of the text.
func ParseLines(data []byte, maker string) ([][]byte, error) {
	var raws [][]byte
	var errs []error
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimRight(strings.TrimSpace(line), "=")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		// Both alphabets: who makes a key by hand uses the common one.
		raw, err := encoding.DecodeString(strings.NewReplacer("+", "-", "/", "_").Replace(line))
		if err == nil && len(raw) != KeySize {
			err = fmt.Errorf("the key has %d bytes: want %d", len(raw), KeySize)
		} else if err != nil {
			err = fmt.Errorf("no key: want %d random bytes in base64, as `%s` writes them", KeySize, maker)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %w", i+1, err))
			continue
		}
		raws = append(raws, raw)
	}
	switch {
	case len(errs) == 0 && len(raws) == 0:
		errs = append(errs, fmt.Errorf("there is no key in it: make one with `%s`", maker))
	case len(raws) > keysMax:
		errs = append(errs, fmt.Errorf("%d keys: at most %d", len(raws), keysMax))
	}
	return raws, errors.Join(errs...)
}

// FormatKey is a file with one key: KeySize bytes that nobody can guess.
func FormatKey(raw [KeySize]byte) string { return encoding.EncodeToString(raw[:]) + "\n" }

func newKey(raw []byte) key {
	derive := func(what string, size int) []byte {
		b, err := hkdf.Key(sha256.New, raw, nil, "muster secret arguments: "+what, size)
		if err != nil {
			panic(err) // the sizes are constants that it takes
		}
		return b
	}
	return key{id: hex.EncodeToString(derive("name of the key", idSize)),
		cipher: derive("cipher", chacha20poly1305.KeySize), nonce: derive("nonce", sha256.Size)}
}

// place returns the bytes that bind a sealed text to its task and argument. Neither part can
// contain a NUL.
func place(task, argument string) []byte {
	return []byte("muster secret argument\x00" + task + "\x00" + argument)
}

// Seal seals the text of an argument of a task.
func (k Keys) Seal(task, argument string, text Text) (string, error) {
	if len(k.list) == 0 {
		return "", errors.New("there is no key to seal secrets with")
	}
	own := k.list[0]
	plain := append([]byte(text), 0x80)
	plain = append(plain, make([]byte, (block-len(plain)%block)%block)...)
	aad := place(task, argument)

	mac := hmac.New(sha256.New, own.nonce)
	mac.Write(aad) // never fails
	mac.Write([]byte{0})
	mac.Write(plain)
	nonce := mac.Sum(nil)[:chacha20poly1305.NonceSizeX]
	c, err := chacha20poly1305.NewX(own.cipher)
	if err != nil {
		return "", err
	}
	box := c.Seal(nonce, nonce, plain, aad)
	return version + "." + own.id + "." + encoding.EncodeToString(box), nil
}

// Open opens what Seal made for this argument of this task.
func (k Keys) Open(task, argument, sealed string) (Text, error) {
	id, box, err := parse(sealed)
	if err != nil {
		return "", err
	}
	var known []string
	for _, one := range k.list {
		if one.id == id {
			return one.open(box, place(task, argument))
		}
		known = append(known, one.id)
	}
	if len(known) == 0 {
		return "", fmt.Errorf("it is sealed with key %s, and there is no key here", id)
	}
	return "", fmt.Errorf("it is sealed with key %s, and here is %s", id, strings.Join(known, ", "))
}

func (k key) open(box, aad []byte) (Text, error) {
	c, err := chacha20poly1305.NewX(k.cipher)
	if err != nil {
		return "", err
	}
	nonce, text := box[:chacha20poly1305.NonceSizeX], box[chacha20poly1305.NonceSizeX:]
	plain, err := c.Open(nil, nonce, text, aad)
	if err != nil {
		return "", errors.New("it was changed, or sealed for another task or argument")
	}
	plain = bytes.TrimRight(plain, "\x00")
	if len(plain) == 0 || plain[len(plain)-1] != 0x80 {
		return "", errors.New("it is not filled up as it should be")
	}
	return Text(plain[:len(plain)-1]), nil
}

// parse takes the sealed form apart.
func parse(sealed string) (id string, box []byte, err error) {
	parts := strings.Split(sealed, ".")
	if len(parts) != 3 || parts[0] != version || len(parts[1]) != hex.EncodedLen(idSize) {
		return "", nil, errors.New("it is not of a form that is known here: was it sealed by another " +
			"version of muster?")
	}
	if _, err := hex.DecodeString(parts[1]); err != nil {
		return "", nil, errors.New("it does not name its key")
	}
	box, err = encoding.Strict().DecodeString(parts[2])
	if err != nil || len(box) < chacha20poly1305.NonceSizeX+chacha20poly1305.Overhead+block {
		return "", nil, errors.New("it is not whole")
	}
	return parts[1], box, nil
}

package serverkey

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"muster/internal/seal"
)

// A Use is a purpose of the key. Its text is part of every key for it, so it must never change.
type Use string

// The uses of the key.
const (
	Audit     Use = "audit log"         // signs entries and checkpoints
	Tokens    Use = "records of tokens" // MACs
	Sessions  Use = "sessions"          // MACs of sessions, and of logins under way
	Orders    Use = "orders"            // signs orders of tasks, answers at gates, the timetable
	Schedules Use = "schedules"         // MACs
	Applies   Use = "applies"           // MACs of their results, and of origins
	Entries   Use = "entries"           // MACs of entries that are kept as texts
	Chains    Use = "chains"            // MACs
	Events    Use = "events"            // MACs
	Firings   Use = "firings"           // MACs of what triggers did, and of events that they collect
	States    Use = "states of jobs"    // MACs of nodes, whose key is another one
	Results   Use = "results of jobs"   // the same
	Backups   Use = "backups"           // MACs
)

const (
	// Size is the size of the key, in bytes.
	Size = seal.KeySize

	version = "m1" // of the form of a MAC: version.key.base64
	idSize  = 4    // bytes that tell keys apart

	// header begins the line that names the installation.
	header = "installation "
	// earlier begins the line with a public key by which the audit log was signed before.
	earlier = "audit "

	// The length of the name of an installation.
	nameMin, nameMax = 4, 40
)

// encoding is that of MACs.
var encoding = base64.RawURLEncoding

// Keys are the keys of a file. Each of them checks; the first one makes. The zero value has none.
type Keys struct {
	installation string
	list         []key
	earlier      []ed25519.PublicKey // of the audit log, whose keys are given up
}

// key is one line of the file.
type key struct {
	id  string // hex
	raw []byte
}

// Format writes no key, whatever the verb is.
func (k Keys) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "(%d keys of servers)", len(k.list))
}

// None reports whether there is no key.
func (k Keys) None() bool { return len(k.list) == 0 }

// Installation returns the name of the installation. Servers that share a Redis have the same one,
// and no other installation has it.
func (k Keys) Installation() string { return k.installation }

// Parse reads the file: a line `installation NAME`, one key a line, in base64, and lines
// `audit KEY` with public keys that have signed the audit log before. Blank lines and lines that
// begin with # do not count. It reports all mistakes at once, and repeats no key.
func Parse(data []byte) (Keys, error) {
	var k Keys
	var errs []error
	lines := strings.Split(string(data), "\n")
	for i, line := range lines {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), earlier); found {
			lines[i] = ""
			public, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
			if err != nil || len(public) != ed25519.PublicKeySize {
				errs = append(errs, fmt.Errorf("line %d: audit: want a public key of %d bytes in base64, as "+
					"`muster init --like` writes it", i+1, ed25519.PublicKeySize))
				continue
			}
			k.earlier = append(k.earlier, public)
		}
		name, found := strings.CutPrefix(strings.TrimSpace(line), header)
		if !found {
			continue
		}
		lines[i] = "" // the numbers of the other lines stay
		switch name = strings.TrimSpace(name); {
		case k.installation != "":
			errs = append(errs, fmt.Errorf("line %d: a second name of the installation: want one", i+1))
		case !isName(name):
			errs = append(errs, fmt.Errorf("line %d: installation: want %d to %d small letters and "+
				"digits, as `muster init` chooses them", i+1, nameMin, nameMax))
		}
		k.installation = name
	}
	raws, err := seal.ParseLines([]byte(strings.Join(lines, "\n")), "muster init")
	if err != nil {
		errs = append(errs, err)
	}
	if k.installation == "" {
		errs = append(errs, errors.New("it does not name the installation: want a line `installation "+
			"NAME`, the same on all servers; `muster init` writes one"))
	}
	if len(errs) > 0 {
		return Keys{}, errors.Join(errs...)
	}
	for _, raw := range raws {
		k.list = append(k.list, key{hex.EncodeToString(derive(raw, "name of the key", idSize)), raw})
	}
	return k, nil
}

func isName(s string) bool {
	return len(s) >= nameMin && len(s) <= nameMax &&
		strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// File returns the text of a file with one key of Size bytes that nobody can guess.
func File(installation string, raw [Size]byte) string {
	return FileFor(installation, raw, `# The key of the servers of one muster installation. Copy this file to each of its servers, and
# to nothing else: who has it can order work, make tokens and write the audit log. The first key
# makes, all keys check. To change it, see muster init --help.
`)
}

// Next is File for another key of the same installation, in place of one that is given up: the new
// file still knows who has signed the audit log until then.
func (k Keys) Next(raw [Size]byte) string {
	text := File(k.installation, raw)
	for _, public := range k.Publics(Audit) {
		text += earlier + base64.StdEncoding.EncodeToString(public) + "\n"
	}
	return text
}

// FileFor is File with other words at its beginning, for keys that are not of servers.
func FileFor(installation string, raw [Size]byte, words string) string {
	return words + header + installation + "\n" + seal.FormatKey(raw)
}

// derive makes size bytes of a key, for one purpose.
func derive(raw []byte, what string, size int) []byte {
	b, err := hkdf.Key(sha256.New, raw, nil, "muster server key: "+what, size)
	if err != nil {
		panic(err) // the sizes are constants that it takes
	}
	return b
}

// MAC returns a text that only servers can make of these parts, in this order. The installation is
// one more part. It is empty if there is no key.
func (k Keys) MAC(use Use, parts ...string) string {
	if k.None() {
		return ""
	}
	own := k.list[0]
	return version + "." + own.id + "." + encoding.EncodeToString(own.mac(use, k.installation, parts))
}

// Check says what is wrong with a MAC of these parts; nil: a server made it.
func (k Keys) Check(use Use, mac string, parts ...string) error {
	if mac == "" {
		return errors.New("no server has vouched for it")
	}
	fields := strings.Split(mac, ".")
	if len(fields) != 3 || fields[0] != version {
		return errors.New("its MAC is of no form that is known here")
	}
	sum, err := encoding.Strict().DecodeString(fields[2])
	if err != nil {
		return errors.New("its MAC is of no form that is known here")
	}
	for _, one := range k.list {
		if one.id != fields[1] {
			continue
		}
		if !hmac.Equal(sum, one.mac(use, k.installation, parts)) {
			return errors.New("it is not what a server wrote")
		}
		return nil
	}
	return errors.New("it was made with a key that this server does not have")
}

// mac binds each part with its length, so that no two lists of parts give the same bytes.
func (k key) mac(use Use, installation string, parts []string) []byte {
	h := hmac.New(sha256.New, derive(k.raw, "MAC of "+string(use), sha256.Size))
	for _, part := range append([]string{installation}, parts...) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:]) // never fails
		h.Write([]byte(part))
	}
	return h.Sum(nil)
}

// Signer returns the key that signs for a use; nil if there is none.
func (k Keys) Signer(use Use) ed25519.PrivateKey {
	if k.None() {
		return nil
	}
	return k.list[0].signer(use)
}

// Publics returns the public keys of a use, of all keys of the file, and earlier ones.
func (k Keys) Publics(use Use) []ed25519.PublicKey {
	out := make([]ed25519.PublicKey, len(k.list))
	for i, one := range k.list {
		out[i] = one.signer(use).Public().(ed25519.PublicKey)
	}
	if use == Audit {
		out = append(out, k.earlier...)
	}
	return out
}

func (k key) signer(use Use) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(derive(k.raw, "signatures of "+string(use), ed25519.SeedSize))
}

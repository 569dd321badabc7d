package audit

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
)

const (
	idBytes   = 16
	saltBytes = 32
	hashBytes = sha256.Size
)

// NewID makes the id of an entry of 16 random bytes.
func NewID(chance [idBytes]byte) string { return hex.EncodeToString(chance[:]) }

// NewSalt makes the salt of a commitment of 32 random bytes.
func NewSalt(chance [saltBytes]byte) string { return hex.EncodeToString(chance[:]) }

// A Person is a name to which entries refer: the id of a principal. Name and salt are kept once,
// beside the log. When they are erased, no entry says any more who it was.
type Person struct {
	Ref  string `json:"ref"`
	Name string `json:"name,omitempty"` // empty: it was erased
	Salt string `json:"salt,omitempty"`
}

// NewPerson returns a name with its reference.
func NewPerson(name, salt string) Person {
	return Person{Ref: commitment("name", salt, []byte(name)), Name: name, Salt: salt}
}

// Erased reports whether the name was taken away.
func (p Person) Erased() bool { return p.Name == "" && p.Salt == "" }

// Fits reports whether the reference is that of the name.
func (p Person) Fits() bool {
	return isHex(p.Salt, saltBytes) && same(p.Ref, commitment("name", p.Salt, []byte(p.Name)))
}

// Private holds the parts of an entry that may be about people, and that can be erased.
type Private struct {
	From   string `json:"from,omitempty"`   // address of the caller
	Reason string `json:"reason,omitempty"` // in the caller's words
}

// reasonMax bounds a reason, in bytes.
const reasonMax = 1000

// Cleaned returns the parts as they are kept.
func (p Private) Cleaned() Private {
	return Private{Clean(p.From, textMax), Clean(p.Reason, reasonMax)}
}

// Commitment returns the value of Entry.Said for these parts; empty if there are none.
func (p Private) Commitment(salt string) string {
	if p == (Private{}) {
		return ""
	}
	text, _ := json.Marshal(p) // two texts can always be encoded
	return commitment("private", salt, text)
}

// commitment hashes a text with a salt. The salt has one length, so that no two pairs of salt and
// text have the same bytes.
func commitment(of, salt string, text []byte) string {
	h := sha256.New()
	h.Write([]byte("muster-audit " + of + "\n" + salt + "\n"))
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

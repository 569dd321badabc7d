package tokens

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/access"
	"muster/fleet"
	"muster/internal/serverkey"
	"muster/internal/wording"
	"muster/jobs"
)

const (
	// prefix lets people and scanners recognise a lost token: mst_ID_SECRET.
	prefix = "mst_"
	// oldPrefix began the tokens of earlier versions, which had no owner and no end.
	oldPrefix = "muster_"

	idLength    = 12 // of random letters and digits
	secretBytes = 32 // nobody can guess so many, so a plain hash of them can be kept
)

// The life of a token.
const (
	lifeUsual = 90 * 24 * time.Hour
	lifeMin   = time.Minute
	lifeMax   = 365 * 24 * time.Hour
)

// A Record is what is kept of a token. The secret is not part of it.
type Record struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Owner   string    `json:"owner"` // the principal in whose name it acts
	Maker   string    `json:"maker"` // the principal who made it
	Created jobs.Time `json:"created"`
	Expires jobs.Time `json:"expires"`
	Hash    string    `json:"hash"` // SHA-256 of the secret, hex

	// Scope is the part of its owner's rights that it has; nil: all of them.
	Scope *access.Grant `json:"scope,omitempty"`
}

// A Refusal says why a token proves nobody.
type Refusal struct {
	Reason string // one of Reasons
	words  string
}

// Error is a sentence for whoever sent the token.
func (r *Refusal) Error() string { return r.words }

// The reasons of a Refusal, for a metric.
const (
	Unknown = "unknown_token" // it was removed, or never made
	Expired = "expired_token"
	Forged  = "forged_token" // no server wrote its record
	Keyless = "no_key"       // this server cannot tell
)

// Reasons are all reasons of a Refusal.
var Reasons = []string{Unknown, Expired, Forged, Keyless}

// unknown is the refusal of a token without a record. It is the same for a wrong id and a wrong
// secret: nobody shall learn which ids there are.
var unknown = &Refusal{Unknown, "this token is not known: it was removed, or mistyped; " +
	"`muster token create NAME` makes one"}

// newRecord completes the record of a new token, and returns it with the token.
func newRecord(r Record) (Record, string) {
	r.ID = strings.ToLower(rand.Text())[:idLength]
	chance := make([]byte, secretBytes)
	rand.Read(chance) // never fails
	secret := base64.RawURLEncoding.EncodeToString(chance)
	r.Hash = hash(secret)
	return r, prefix + r.ID + "_" + secret
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// split takes a token apart.
func split(token string) (id, secret string, err error) {
	rest, found := strings.CutPrefix(token, prefix)
	id, secret, whole := strings.Cut(rest, "_")
	switch {
	case found && whole && isID(id) && secret != "":
		return id, secret, nil
	case strings.HasPrefix(token, oldPrefix):
		return "", "", &Refusal{Unknown, "an earlier version of muster made this token, and such " +
			"tokens hold no longer, as they had no end: `muster token create NAME` makes one"}
	}
	return "", "", unknown
}

func isID(id string) bool {
	return len(id) == idLength && strings.Trim(id, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// text returns the text that Redis keeps of a record: its JSON, and before it the MAC of the JSON.
func (r Record) text(keys serverkey.Keys) (string, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	return keys.MAC(serverkey.Tokens, string(data)) + " " + string(data), nil
}

// open reads the text that Redis keeps under an id. It decodes a record only if its MAC proves that
// a server wrote it. The error is a *Refusal.
func open(keys serverkey.Keys, id, text string) (Record, error) {
	if keys.None() {
		return Record{}, &Refusal{Keyless, "this server has no key, so it cannot tell whether a token " +
			"holds: `muster init` makes the key, and every server of an installation needs the same one"}
	}
	mac, data, _ := strings.Cut(text, " ")
	err := keys.Check(serverkey.Tokens, mac, data)
	var r Record
	if err == nil {
		err = json.Unmarshal([]byte(data), &r)
	}
	if err == nil && r.ID != id {
		err = errors.New("it is the record of another token")
	}
	if err != nil {
		return Record{}, &Refusal{Forged, "the record of this token in Redis does not hold: " +
			err.Error()}
	}
	return r, nil
}

// admits says why a secret and a moment do not fit a record; nil: they do. The error is a *Refusal.
func (r Record) admits(secret string, now time.Time) error {
	if subtle.ConstantTimeCompare([]byte(hash(secret)), []byte(r.Hash)) != 1 {
		return unknown
	}
	return r.holds(now)
}

// holds says that a token has ended; nil: it holds. The error is a *Refusal.
func (r Record) holds(now time.Time) error {
	if !now.Before(r.Expires.Time) {
		return &Refusal{Expired, fmt.Sprintf("this token ended at %s: `muster token create NAME` makes "+
			"another", r.Expires)}
	}
	return nil
}

// checkOwner says what is wrong with the name of an owner.
func checkOwner(owner string) error {
	for _, kind := range []string{UserPrefix, "os:"} {
		if name, found := strings.CutPrefix(owner, kind); found {
			return fleet.CheckName(name)
		}
	}
	return fmt.Errorf("%q: want user:NAME, or os:NAME for a user of the server's machine",
		wording.Clip(owner))
}

// UserPrefix begins the names of principals who have no other proof than tokens.
const UserPrefix = "user:"

// parseLife reads the time for which a token shall hold; empty: the usual one.
func parseLife(text string) (time.Duration, error) {
	if text == "" {
		return lifeUsual, nil
	}
	life, err := time.ParseDuration(text)
	if days, found := strings.CutSuffix(text, "d"); found {
		var n int
		n, err = strconv.Atoi(days)
		life = time.Duration(min(n, 1000)) * 24 * time.Hour
	}
	if err != nil || life < lifeMin || life > lifeMax {
		return 0, fmt.Errorf("%q: want a time from 1m to 365d, such as 12h or 90d", wording.Clip(text))
	}
	return life, nil
}

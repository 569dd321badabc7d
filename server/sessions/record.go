package sessions

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

	"muster/internal/serverkey"
	"muster/jobs"
	"muster/server/idp"
)

// A Kind says what a record is for. It is part of the MAC, so none can stand for another.
type Kind string

// The kinds of records.
const (
	Browser Kind = "browser" // a session whose secret is in a cookie
	Program Kind = "program" // a session of the command line, whose secret is sent as a token is
	Link    Kind = "link"    // begins a session of a browser, once
	Code    Kind = "code"    // begins a session of the command line, once
)

// The life of records. A session ends after lifeMax, and sooner if nobody uses it for idleMax.
const (
	lifeMax  = 12 * time.Hour
	idleMax  = 8 * time.Hour
	linkLife = time.Minute
)

const (
	idLength    = 12
	secretBytes = 32
	// Prefix begins the secrets of sessions and links: mss_ID_SECRET.
	Prefix = "mss_"
)

// A Record is what is kept of a session or a link. The secret is not part of it.
type Record struct {
	ID      string    `json:"id"`
	Kind    Kind      `json:"kind"`
	Owner   string    `json:"owner"`  // the principal in whose name it acts
	Proof   string    `json:"proof"`  // what proved the owner: socket, token, certificate, oidc
	Groups  []string  `json:"groups"` // that an identity provider has named, as policies name them
	Token   string    `json:"token"`  // id of the token by which it was begun; empty: none
	Parent  string    `json:"parent"` // id of the session by which it was begun; empty: none
	Created jobs.Time `json:"created"`
	Expires jobs.Time `json:"expires"`
	Until   jobs.Time `json:"until"` // a link's session ends then at the latest; zero: it may live on
	Hash    string    `json:"hash"`  // SHA-256 of the secret, hex

	// Challenge is that of the program to which a code belongs.
	Challenge string `json:"challenge,omitempty"`

	// User is the uid of the program that got the session over plain loopback, where every user of
	// the machine can read what a browser sends to their port; nil: it came over TLS.
	User *int `json:"user,omitempty"`
}

// A Refusal says why a session, or a link, proves nobody.
type Refusal struct {
	Reason string // one of Reasons
	words  string
}

// Error is a sentence for whoever sent it.
func (r *Refusal) Error() string { return r.words }

// The reasons of a Refusal, for a metric.
const (
	Unknown = "unknown_session" // it was ended, or there never was one
	Ended   = "ended_session"
	Forged  = "forged_session" // no server wrote its record
	Moved   = "moved_session"  // another user of the machine has it
	Used    = "used_link"      // or an unknown one, or one that has ended

	// Grantless is the reason to refuse whom an identity provider has proven, and who may do nothing.
	Grantless = "no_grant"
)

// Reasons are all reasons of a Refusal.
var Reasons = append([]string{Unknown, Ended, Forged, Moved, Used, Grantless}, idp.Reasons...)

var (
	unknown = &Refusal{Unknown, "this session is not known: it was ended; log in again at " +
		Path + ", or with `muster login`"}
	usedLink = &Refusal{Used, "this link holds no longer: it works once, for a minute; " +
		"`muster login --browser` makes another"}
)

// newRecord completes a new record, and returns it with its secret.
func newRecord(r Record) (Record, string) {
	r.ID = strings.ToLower(rand.Text())[:idLength]
	chance := make([]byte, secretBytes)
	rand.Read(chance) // never fails
	secret := base64.RawURLEncoding.EncodeToString(chance)
	r.Hash = hash(secret)
	return r, Prefix + r.ID + "_" + secret
}

func hash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// split takes what newRecord returned apart.
func split(text string) (id, secret string, whole bool) {
	rest, found := strings.CutPrefix(text, Prefix)
	id, secret, cut := strings.Cut(rest, "_")
	return id, secret, found && cut && isID(id) && len(secret) == 43
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
	return keys.MAC(serverkey.Sessions, string(r.Kind), string(data)) + " " + string(data), nil
}

// open reads the text that Redis keeps under an id. It decodes a record only if its MAC proves that
// a server wrote it, as one of this kind. The error is a *Refusal.
func open(keys serverkey.Keys, kind Kind, id, text string) (Record, error) {
	mac, data, _ := strings.Cut(text, " ")
	err := keys.Check(serverkey.Sessions, mac, string(kind), data)
	var r Record
	if err == nil {
		err = json.Unmarshal([]byte(data), &r)
	}
	if err == nil && (r.ID != id || r.Kind != kind) {
		err = errors.New("it is the record of another session")
	}
	if err != nil {
		return Record{}, &Refusal{Forged, "the record of this session in Redis does not hold: " +
			err.Error()}
	}
	return r, nil
}

// useText returns the text that Redis keeps of the last use of a session.
func useText(keys serverkey.Keys, id string, at time.Time) string {
	micros := strconv.FormatInt(int64(jobs.MicrosOf(at)), 10)
	return keys.MAC(serverkey.Sessions, "use", id, micros) + " " + micros
}

// usedAt returns when a session was used last. A text that no server wrote counts for nothing: then
// it is as if the session had not been used since it began.
func (r Record) usedAt(keys serverkey.Keys, text string) time.Time {
	mac, micros, _ := strings.Cut(text, " ")
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil || keys.Check(serverkey.Sessions, mac, "use", r.ID, micros) != nil {
		return r.Created.Time
	}
	return jobs.Micros(n).Time()
}

// matches reports whether a secret is that of the record.
func (r Record) matches(secret string) bool {
	return subtle.ConstantTimeCompare([]byte(hash(secret)), []byte(r.Hash)) == 1
}

// holds says that a session has ended by itself; nil: it holds. The error is a *Refusal.
func (r Record) holds(used, now time.Time) error {
	if !now.Before(r.Expires.Time) {
		return &Refusal{Ended, fmt.Sprintf("this session ended at %s: log in again", r.Expires)}
	}
	if now.Sub(used) >= idleMax {
		return &Refusal{Ended, fmt.Sprintf("this session ended because nobody used it for %s: log in "+
			"again", idleMax)}
	}
	return nil
}

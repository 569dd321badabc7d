package ingress

import (
	"maps"
	"slices"
	"time"
)

// A Proof is the way in which a sender proves who it is.
type Proof string

// The proofs.
const (
	HMAC   Proof = "hmac"   // a MAC over the body
	Signed Proof = "signed" // a MAC over id, time and body, as Standard Webhooks have it
	Token  Proof = "token"  // the secret itself, in a header
	Basic  Proof = "basic"  // user and password
	// Printed means that a program of ours prints the events: nothing over HTTP proves any.
	Printed Proof = "printed"
)

// A Form says in which places a sender puts proof, id, time and kind of a delivery, and how it
// writes them.
type Form struct {
	Proof    Proof
	Header   string // that has the MAC or the token
	Prefix   string // before the MAC or the token, in the header
	Hash     string // of the MAC: sha256, sha512
	Encoding string // of the MAC: hex, base64
	User     string // of Basic

	ID   string // header with the id of the delivery; empty: it is told by its bytes
	Time string // header with the seconds since 1970 at which it was sent; empty: there is none
	// Tolerance bounds the age of a delivery, and how far its time may be ahead of ours.
	Tolerance time.Duration

	Kind   string   // header with the kind of the event; empty: it is in the body
	KindAt []string // paths in the body whose values, with dots between them, are the kind
	// KindElse is the path of a name with dots, whose last part stands for the first of KindAt in a
	// body without that one.
	KindElse string
}

// bearer is the header of tokens, unless a source says another one.
const bearer = "Authorization"

// tolerance is the usual bound on the age of a delivery with a time.
const tolerance = 5 * time.Minute

// presets are the forms of known senders. The fields of a source replace those of its preset.
var presets = map[string]Form{
	"github": {Proof: HMAC, Header: "X-Hub-Signature-256", Prefix: "sha256=", Hash: "sha256",
		Encoding: "hex", Kind: "X-GitHub-Event"},
	"gitlab": {Proof: Token, Header: "X-Gitlab-Token", ID: "Idempotency-Key",
		KindAt: []string{"object_kind"}},
	"gitea": {Proof: HMAC, Header: "X-Gitea-Signature", Hash: "sha256", Encoding: "hex",
		Kind: "X-Gitea-Event"},
	"forgejo": {Proof: HMAC, Header: "X-Forgejo-Signature", Hash: "sha256", Encoding: "hex",
		Kind: "X-Forgejo-Event"},
	"bitbucket": {Proof: HMAC, Header: "X-Hub-Signature", Prefix: "sha256=", Hash: "sha256",
		Encoding: "hex", Kind: "X-Event-Key"},
	"netbox": {Proof: HMAC, Header: "X-Hook-Signature", Hash: "sha512", Encoding: "hex",
		// NetBox 4.5 has no model any more, and 4.4 is the first one with object_type (dcim.device).
		KindAt: []string{"model", "event"}, KindElse: "object_type"},
	"alertmanager": {Proof: Token, Header: bearer, Prefix: "Bearer ",
		KindAt: []string{"status"}},
	"alertmanager-basic": {Proof: Basic, Header: bearer, KindAt: []string{"status"}},
	"standard-webhooks": {Proof: Signed, Header: "Webhook-Signature", Hash: "sha256",
		Encoding: "base64", ID: "Webhook-Id", Time: "Webhook-Timestamp", Tolerance: tolerance,
		KindAt: []string{"type"}},
	"hmac":  {Proof: HMAC, Header: "X-Signature", Hash: "sha256", Encoding: "hex"},
	"token": {Proof: Token, Header: bearer, Prefix: "Bearer "},
	"basic": {Proof: Basic, Header: bearer},

	programPreset: {Proof: Printed},
}

// Presets returns the names of the known senders.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

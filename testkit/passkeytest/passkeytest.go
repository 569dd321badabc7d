// Package passkeytest has a passkey made of software for tests, with the browser around it.
//
// Floor 0: tests only; imports nothing of the house.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"testing"
)

// The flags of an authenticator that saw a touch, and that checked a PIN or a finger.
const (
	Touched  = 0x01
	Verified = 0x04
)

// A Passkey belongs to a site.
type Passkey struct {
	Site string
	own  *ecdsa.PrivateKey
}

// New makes a passkey for a site.
func New(t testing.TB, site string) Passkey {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Passkey{site, own}
}

// SPKI returns the public key, as a browser says it when the passkey is made.
func (p Passkey) SPKI(t testing.TB) []byte {
	t.Helper()
	spki, err := x509.MarshalPKIXPublicKey(&p.own.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return spki
}

// Client returns the client data of a browser whose page at https://muster.example has asked for a
// signature. More comes before the last brace.
func Client(challenge []byte, more string) string {
	return `{"type":"webauthn.get","challenge":"` + base64.RawURLEncoding.EncodeToString(challenge) +
		`","origin":"https://muster.example"` + more + `}`
}

// Sign returns the data of the authenticator, with these flags and more behind the counter, and its
// signature.
func (p Passkey) Sign(t testing.TB, client string, flags byte, more ...byte) (authenticator,
	signature []byte) {
	t.Helper()
	site, said := sha256.Sum256([]byte(p.Site)), sha256.Sum256([]byte(client))
	data := slices.Concat(site[:], binary.BigEndian.AppendUint32([]byte{flags}, 7), more)
	sum := sha256.Sum256(slices.Concat(data, said[:]))
	signature, err := ecdsa.SignASN1(rand.Reader, p.own, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	return data, signature
}

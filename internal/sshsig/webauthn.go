package sshsig

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"muster/internal/wording"
)

// algoWebAuthn is the algorithm of signatures that a web browser had made with a passkey.
// PROTOCOL.u2f of OpenSSH describes it, and Web Authentication Level 2 all that is in it.
const algoWebAuthn = "webauthn-" + ssh.KeyAlgoSKECDSA256

// curve256 is the name of the curve of passkeys in the keys of OpenSSH.
const curve256 = "nistp256"

// The flags of an authenticator that say that more follows than these flags and the counter.
const flagsMore = 0xc0

// authenticatorSize is the size of the data of an authenticator, in bytes: a hash, the flags, the
// counter.
const authenticatorSize = sha256.Size + flagsSize

// wirePasskey is the public key of a passkey, as OpenSSH has it on the wire.
type wirePasskey struct {
	Type, Curve string
	Point       []byte
	Application string // the name of the site
}

// wireBrowser is behind the algorithm and the signature proper, where a browser had it made.
type wireBrowser struct {
	Flags      [flagsSize]byte // and the counter
	Origin     string
	Client     []byte // the client data, in JSON
	Extensions []byte
}

// wireECDSA is a signature of ECDSA.
type wireECDSA struct{ R, S *big.Int }

// siteOnly reports whether a key is for a site of browsers, and so no key of OpenSSH: the
// applications of those begin with ssh: (ssh-keygen(1), -O application).
func siteOnly(key ssh.PublicKey) bool {
	var pass wirePasskey
	return key.Type() == ssh.KeyAlgoSKECDSA256 && ssh.Unmarshal(key.Marshal(), &pass) == nil &&
		!strings.HasPrefix(pass.Application, "ssh:")
}

// browserEnd reads what follows the signature proper of a browser.
func browserEnd(rest []byte) (w wireBrowser, err error) {
	if err := ssh.Unmarshal(rest, &w); err != nil {
		return w, errors.New("the signature of a browser within is cut, or something follows it: want " +
			"it as it was made")
	}
	return w, nil
}

// clientData has the fields of the client data of a browser that are read.
type clientData struct {
	Origin      string `json:"origin"` // of the page that asked, such as https://muster.example
	CrossOrigin bool   `json:"crossOrigin"`
}

// verifyBrowser returns why a passkey did not sign the data in a browser; nil: it did. The
// authenticator must have proved who its user is, by a PIN or a finger.
func verifyBrowser(key ssh.PublicKey, sig *ssh.Signature, data []byte) error {
	var pass wirePasskey
	if err := ssh.Unmarshal(key.Marshal(), &pass); err != nil {
		return err
	}
	public := key.(ssh.CryptoPublicKey).CryptoPublicKey().(*ecdsa.PublicKey)
	end, err := browserEnd(sig.Rest)
	if err != nil {
		return err
	}
	switch flags := end.Flags[0]; {
	case flags&flagsMore != 0 || len(end.Extensions) > 0:
		return errors.New("the authenticator has added extensions, which are not supported here")
	case flags&flagPresent == 0 || flags&flagVerified == 0:
		return errors.New("the authenticator did not ask its user for a PIN or a finger: sign anew")
	}
	if err := end.checkClient(pass.Application, data); err != nil {
		return err
	}
	site, said := sha256.Sum256([]byte(pass.Application)), sha256.Sum256(end.Client)
	sum := sha256.Sum256(slices.Concat(site[:], end.Flags[:], said[:]))
	var pair wireECDSA
	if err := ssh.Unmarshal(sig.Blob, &pair); err != nil {
		return errors.New("the signature proper is cut: want it as the browser made it")
	}
	if !ecdsa.Verify(public, sum[:], pair.R, pair.S) {
		return errors.New("the signature does not fit the key: choose another passkey in the browser")
	}
	return nil
}

// checkClient says why the client data are not those of a browser in which a page of the site asked
// for a signature of the data. Each browser writes the same beginning (Web Authentication Level 2,
// §5.8.1.1), so it is compared as text: two readers of JSON could read two meanings. Browsers let
// pages of names below the site ask, too, which are refused, and pages at any port of the site.
func (w wireBrowser) checkClient(site string, data []byte) error {
	if strings.ContainsAny(w.Origin, `"\`) {
		return errors.New("the origin has a quote or a backslash: want that of a page")
	}
	if u, err := url.Parse(w.Origin); err != nil || u.Hostname() != site {
		return fmt.Errorf("a page of %s has asked for it, and the passkey is for %s: open the page of "+
			"the task there", wording.Quote(w.Origin), wording.Quote(site))
	}
	begin := `{"type":"webauthn.get","challenge":"` + base64.RawURLEncoding.EncodeToString(data) +
		`","origin":"` + w.Origin + `"`
	if !strings.HasPrefix(string(w.Client), begin) {
		return errors.New("the browser was asked to sign something else: load the page of the task " +
			"again, and sign anew")
	}
	var client clientData
	if err := json.Unmarshal(w.Client, &client); err != nil {
		return errors.New("the client data are no JSON: want them as the browser made them")
	}
	if client.CrossOrigin {
		return errors.New("a page in a frame of another site has asked for it: open the page of the " +
			"task itself")
	}
	return nil
}

// An Assertion is the answer of a browser whose user agreed with a passkey: the bytes of an
// AuthenticatorAssertionResponse (Web Authentication Level 2, §5.2.2).
type Assertion struct {
	Client        []byte // clientDataJSON
	Authenticator []byte // authenticatorData
	Signature     []byte // in ASN.1
}

// Challenge returns the bytes that a browser must sign for a message in a namespace.
func Challenge(namespace string, message []byte) []byte {
	return toSign(namespace, signHash, message)
}

// FromPasskey returns the text of the signature that a browser had made for a message in a
// namespace, by one of the passkeys of a person. The error says why it is by none of them.
func (a Allowed) FromPasskey(name, namespace string, message []byte, by Assertion) (string,
	error) {
	inner, err := by.inner()
	if err != nil {
		return "", err
	}
	var against []error
	for _, e := range a.entries {
		key, err := ssh.ParsePublicKey(e.key)
		if err != nil || key.Type() != ssh.KeyAlgoSKECDSA256 || !slices.Contains(e.names, name) {
			continue
		}
		if err := verifyBrowser(key, inner, Challenge(namespace, message)); err != nil {
			against = append(against, fmt.Errorf("the passkey %s did not sign this: %w",
				ssh.FingerprintSHA256(key), err))
			continue
		}
		return string(armor(ssh.Marshal(blob{Magic: magic, Version: version, Key: e.key,
			Namespace: namespace, Hash: signHash, Signature: ssh.Marshal(inner)}))), nil
	}
	if len(against) == 0 {
		return "", fmt.Errorf("the allowed signers have no passkey of %s: make one on the page "+
			"/passkeys, and have its line added", wording.Quote(name))
	}
	return "", errors.Join(against...)
}

// inner returns the signature proper as OpenSSH has it.
func (a Assertion) inner() (*ssh.Signature, error) {
	if len(a.Authenticator) != authenticatorSize {
		return nil, fmt.Errorf("the data of the authenticator have %s: want %d, without extensions",
			wording.Count(len(a.Authenticator), "byte"), authenticatorSize)
	}
	var pair wireECDSA
	if rest, err := asn1.Unmarshal(a.Signature, &pair); err != nil || len(rest) > 0 {
		return nil, errors.New("the signature is none of ECDSA in ASN.1: want it as the browser made it")
	}
	var client clientData
	if err := json.Unmarshal(a.Client, &client); err != nil {
		return nil, errors.New("the client data are no JSON: want them as the browser made them")
	}
	end := wireBrowser{Flags: [flagsSize]byte(a.Authenticator[sha256.Size:]), Origin: client.Origin,
		Client: a.Client}
	return &ssh.Signature{Format: algoWebAuthn, Blob: ssh.Marshal(pair), Rest: ssh.Marshal(end)}, nil
}

// PasskeyText returns a passkey as it stands in allowed_signers: its type and its base64. spki is
// the public key as a browser says it, in the form SubjectPublicKeyInfo; site is the name of the
// site that the passkey is for.
func PasskeyText(spki []byte, site string) (string, error) {
	parsed, err := x509.ParsePKIXPublicKey(spki)
	if err != nil {
		return "", fmt.Errorf("the public key is damaged: want it as the browser made it: %w", err)
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return "", errors.New("the passkey is of another kind: want one of ECDSA with P-256")
	}
	if site == "" || strings.ContainsFunc(site, isHidden) || len(site) > nameMax {
		return "", fmt.Errorf("the name of the site is %s: want that in the address of the page",
			wording.Quote(site))
	}
	point, err := public.Bytes()
	if err != nil {
		return "", err
	}
	key, err := ssh.ParsePublicKey(ssh.Marshal(wirePasskey{Type: ssh.KeyAlgoSKECDSA256,
		Curve: curve256, Point: point, Application: site}))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

package remote

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// ScannedCertificate is a certificate that a host has shown, by an authority that the
// inventory has for it, for this host and this time.
type ScannedCertificate struct {
	Authority   string    // who signed it, "ssh-ed25519 AAAA…", as an inventory has it
	Fingerprint string    // of the host key, SHA256:…
	Principals  []string  // for whom it is
	ID          string    // what the authority calls it
	Until       time.Time // zero: it has no end
}

// errNoAuthority is about a host of which nobody may vouch for the key.
var errNoAuthority = errors.New("the inventory has no authority for it (host_ca)")

// ScanCertificate is Scan of a certificate: h shows the one of its host key, and it is held
// against the authorities, principals and revoked keys of h. KindHostKey means that it does
// not hold, KindRefused that the host shows none.
func (c *Client) ScanCertificate(ctx context.Context, h fleet.Host) (ScannedCertificate, error) {
	v, err := c.aim(h.Jump, h.Hop())
	if err != nil {
		return ScannedCertificate{}, err
	}
	t, err := c.trustIn(h.Hop(), v.suite.legacy)
	if err == nil && len(t.cas) == 0 {
		err = errNoAuthority
	}
	if err != nil {
		return ScannedCertificate{}, v.to.fault("scan", KindInvalid, err)
	}
	t.keys = nil // that its key is known as well is no answer
	shown, err := v.shown(ctx, t.algorithms(), "a certificate")
	if err != nil {
		return ScannedCertificate{}, err
	}
	if err := t.check(shown, time.Now()); err != nil {
		return ScannedCertificate{}, v.to.fault("scan", KindHostKey, err)
	}
	cert, ok := shown.(*ssh.Certificate)
	if !ok {
		return ScannedCertificate{}, v.to.fault("scan", KindRefused,
			errors.New("it shows no certificate"))
	}
	_, until := certTimes(cert)
	return ScannedCertificate{Authority: authorizedLine(cert.SignatureKey),
		Fingerprint: ssh.FingerprintSHA256(cert.Key), Principals: cert.ValidPrincipals,
		ID: cert.KeyId, Until: until}, nil
}

package remote

import (
	"context"
	"errors"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// ScannedCertificate is a certificate that a host has shown. An authority in the inventory
// signed it, and it is valid for this host at this time.
type ScannedCertificate struct {
	Authority   string    // who signed it, in the format of an inventory
	Fingerprint string    // of the host key, SHA256:…
	Principals  []string  // names of hosts for which it is valid
	ID          string    // the authority's name for it
	Until       time.Time // zero: it never expires
}

// errNoAuthority means that the inventory has no authority for a host.
var errNoAuthority = errors.New("the inventory has no authority for it (host_ca)")

// ScanCertificate is Scan for the certificate of a host key: it checks the certificate against
// the authorities, principals and revoked keys of h. KindHostKey means that it is invalid,
// KindRefused that the host shows none.
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
	t.keys = nil // a known key must not replace the certificate
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

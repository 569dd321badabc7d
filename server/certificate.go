package server

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"

	"muster/access"
	"muster/server/web"
)

// certPrefix begins the names of principals who are proven by a certificate.
const certPrefix = "cert:"

// certified returns the caller whose certificate TLS has verified; sent reports whether there is
// one.
func certified(r *http.Request, now time.Time) (who web.Caller, sent bool, err error) {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return who, false, nil
	}
	cert := r.TLS.VerifiedChains[0][0]
	// A connection may live longer than its certificate.
	if now.After(cert.NotAfter) {
		return who, true, unauthorized("expired_certificate", fmt.Sprintf("this certificate ended at "+
			"%s: connect with a new one", cert.NotAfter.UTC().Format(time.RFC3339)))
	}
	name, err := nameIn(cert)
	if err != nil {
		return who, true, unauthorized("nameless_certificate", err.Error())
	}
	return web.Caller{Name: certPrefix + name, Until: cert.NotAfter}, true, nil
}

// nameIn returns the one name in a certificate: a URI, else an address of mail, else a name of DNS.
func nameIn(c *x509.Certificate) (string, error) {
	var uris []string
	for _, u := range c.URIs {
		uris = append(uris, u.String())
	}
	for _, kind := range []struct {
		what string
		list []string
	}{{"URIs", uris}, {"addresses of mail", c.EmailAddresses}, {"names of DNS", c.DNSNames}} {
		switch len(kind.list) {
		case 0:
			continue
		case 1:
			return kind.list[0], access.CheckPrincipal(certPrefix + kind.list[0])
		}
		return "", fmt.Errorf("this certificate has %d %s: want one, so that it names one caller",
			len(kind.list), kind.what)
	}
	return "", errors.New("this certificate names nobody: want one URI, address of mail or name of " +
		"DNS as its subject alternative name")
}

package access

import (
	"crypto/x509"
	"errors"
	"fmt"
)

// certPrefix begins the names of principals who are proven by a certificate.
const certPrefix = "cert:"

// OfCertificate returns the principal whom a certificate proves: by its one URI, else its address
// of mail, else its name of DNS.
func OfCertificate(c *x509.Certificate) (string, error) {
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
			name := certPrefix + kind.list[0]
			return name, CheckPrincipal(name)
		}
		return "", fmt.Errorf("this certificate has %d %s: want one, so that it names one caller",
			len(kind.list), kind.what)
	}
	return "", errors.New("this certificate names nobody: want one URI, address of mail or name of " +
		"DNS as its subject alternative name")
}

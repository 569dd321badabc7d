package remote

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"muster/fleet"
)

// trust holds everything by which a host can prove its identity: its own keys, and
// authorities that certify its key.
type trust struct {
	keys       hostKeys
	cas        hostKeys
	revoked    hostKeys
	principals []string // a certificate must carry one of these
	legacy     bool     // SHA-1 signatures are accepted as well
}

// trustIn parses the keys and authorities of a host in the inventory.
func (c *Client) trustIn(h fleet.Hop, legacy bool) (trust, error) {
	t := trust{principals: h.Principals, legacy: legacy}
	if len(t.principals) == 0 {
		t.principals = []string{h.Address, h.Name}
	}
	var errs [4]error
	t.keys, errs[0] = c.parsed.all(h.HostKeys)
	t.cas, errs[1] = c.parsed.all(h.HostCAs)
	t.revoked, errs[2] = c.parsed.all(h.Revoked)
	if len(h.HostKeys)+len(h.HostCAs) == 0 {
		errs[3] = errNoHostKey
	}
	err := errors.Join(errs[:]...)
	if err == nil && len(t.algorithms()) == 0 {
		// With an empty list, the library would offer all algorithms that it knows.
		err = fmt.Errorf("its host key of type %s is of no use but with the profile legacy", t.types())
	}
	return t, err
}

// algorithms returns the algorithms by which the host may prove its identity. Without such a
// list, a host with several keys shows the one that the library prefers. The inventory may
// have another one, so the host would look like an impostor.
func (t trust) algorithms() []string {
	var all []string
	if len(t.cas) > 0 {
		all = append(all, ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01,
			ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01)
		if t.legacy {
			all = append(all, ssh.CertAlgoRSAv01)
		}
	}
	for _, key := range t.keys {
		for _, name := range algorithmsOf(key, t.legacy) {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// check accepts offered only if it is one of the known keys, or has a certificate from a
// known authority for this host and this time.
func (t trust) check(offered ssh.PublicKey, now time.Time) error {
	key := plainKey(offered)
	if t.revoked.has(key) {
		return distrust("its host key %s is revoked in the inventory: the connection was refused; "+
			"give it a new key", describe(key))
	}
	if t.keys.has(key) {
		return nil // even if a certificate around it is invalid
	}
	if cert, ok := offered.(*ssh.Certificate); ok {
		return t.checkCertificate(cert, now)
	}
	return distrust("its host key is %s, the inventory has %s: the connection was refused; "+
		"if the host was reinstalled, put its new key into the inventory", describe(key), t)
}

func (t trust) checkCertificate(cert *ssh.Certificate, now time.Time) error {
	ca := cert.SignatureKey
	from, until := certTimes(cert)
	switch {
	case cert.CertType != ssh.HostCert:
		return distrust("it shows a certificate that is not one of a host")
	case !t.cas.has(ca):
		return distrust("its host key is certified by %s, the inventory has %s: the connection was "+
			"refused", describe(ca), t)
	case t.revoked.has(ca):
		return distrust("its host key is certified by %s, which is revoked in the inventory: the "+
			"connection was refused", describe(ca))
	case cert.Signature.Format == ssh.KeyAlgoRSA && !t.legacy:
		return distrust("the certificate of its host key is signed with SHA-1: have it signed again")
	case now.Before(from):
		return distrust("the certificate of its host key holds only from %s on", clock(from))
	case !until.IsZero() && !now.Before(until):
		return distrust("the certificate of its host key ended at %s: have it signed again",
			clock(until))
	case len(cert.ValidPrincipals) == 0:
		return distrust("the certificate of its host key names no host, so it would do for any: " +
			"have it signed for this one")
	}
	i := slices.IndexFunc(cert.ValidPrincipals, func(p string) bool {
		return slices.Contains(t.principals, p)
	})
	if i < 0 {
		return distrust("the certificate of its host key is for %q, and this host should be %q: the "+
			"connection was refused; if that is another name of it, put it under principals",
			cert.ValidPrincipals, t.principals)
	}
	// The library checks the rest: the signature, and unknown critical options.
	checker := ssh.CertChecker{Clock: func() time.Time { return now }}
	if err := checker.CheckCert(cert.ValidPrincipals[i], cert); err != nil {
		return distrust("the certificate of its host key does not hold: %v", err)
	}
	return nil
}

// String returns the keys and authorities that would have been accepted.
func (t trust) String() string {
	switch {
	case len(t.cas) == 0:
		return t.keys.String()
	case len(t.keys) == 0:
		return "the authority " + t.cas.String()
	}
	return t.keys.String() + " and the authority " + t.cas.String()
}

// types returns the types of the known keys, for an error about a host that has none of them.
func (t trust) types() string {
	var all []string
	for _, key := range t.keys {
		all = append(all, key.Type())
	}
	if len(t.cas) > 0 {
		all = append(all, "a host authority")
	}
	return strings.Join(all, ", ")
}

// hostKeyError means that the host showed a key that is not trusted.
type hostKeyError struct{ text string }

func (e *hostKeyError) Error() string { return e.text }

func distrust(format string, args ...any) error {
	return &hostKeyError{fmt.Sprintf(format, args...)}
}

// certTimes returns the validity of a certificate; until is zero if it never ends.
func certTimes(cert *ssh.Certificate) (from, until time.Time) {
	const latest = 1 << 62 // largest number of seconds that a time can hold
	if cert.ValidBefore != ssh.CertTimeInfinity {
		until = time.Unix(int64(min(cert.ValidBefore, latest)), 0)
	}
	return time.Unix(int64(min(cert.ValidAfter, latest)), 0), until
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

// plainKey returns the key without its certificate.
func plainKey(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

func (k hostKeys) has(key ssh.PublicKey) bool {
	blob := key.Marshal()
	return slices.ContainsFunc(k, func(other ssh.PublicKey) bool {
		return bytes.Equal(other.Marshal(), blob)
	})
}

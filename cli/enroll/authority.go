package enroll

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/cli"
	"muster/cli/reach"
	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/files"
)

// certified describes the certificate of an authority for the key of a host.
type certified struct {
	Fingerprint string     `json:"fingerprint"` // of the key
	Principals  []string   `json:"principals"`
	ID          string     `json:"id,omitempty"`
	Until       *time.Time `json:"until,omitempty"` // nil: it has no end
}

// String describes it for people.
func (c *certified) String() string {
	until := "without end"
	if c.Until != nil {
		until = "until " + c.Until.UTC().Format("2006-01-02 15:04:05 UTC")
	}
	return fmt.Sprintf("certifies its key %s for %s %s: no key to pin", cli.Cell(c.Fingerprint),
		cli.Cell(strings.Join(c.Principals, ", ")), until)
}

// readAuthorities reads files with public keys, one a line, as ssh-keygen writes them.
func readAuthorities(paths []string) (keys []string, err error) {
	var errs []error
	for _, path := range paths {
		text, err := files.Read(path, cli.ArgFileMax)
		if err != nil {
			errs = append(errs, fmt.Errorf("--ca: %w", err))
			continue
		}
		n, found := 0, len(keys)
		for lines := bufio.NewScanner(strings.NewReader(string(text))); lines.Scan(); {
			n++
			words := strings.Fields(lines.Text())
			if len(words) == 0 || strings.HasPrefix(words[0], "#") {
				continue
			}
			key := strings.Join(words[:min(2, len(words))], " ")
			if _, err := remote.Fingerprint(key); err != nil {
				errs = append(errs, fmt.Errorf("--ca: %s:%d: want a public key, as in host_ca.pub: %w",
					path, n, err))
				continue
			}
			keys = append(keys, key)
		}
		if len(keys) == found && len(errs) == 0 {
			errs = append(errs, fmt.Errorf("--ca: %s has no public key", path))
		}
	}
	return keys, errors.Join(errs...)
}

// scanCertificate makes a host show its certificate, if an authority may have signed one. It
// returns false if the host must show its key instead: it has no certificate, or no known authority
// signed it.
func scanCertificate(ctx context.Context, c *remote.Client, h fleet.Host, cas []string,
	book *knownFile) (e enrolled, ok bool) {
	trust := book.trust(h)
	h.HostCAs = slices.Concat(h.HostCAs, trust.HostCAs, cas)
	h.Revoked = slices.Concat(h.Revoked, trust.Revoked)
	if len(h.HostCAs) == 0 {
		return e, false
	}
	e = enrolled{Host: h.Name, Address: reach.Address(h), Keys: []enrolledKey{}}
	cert, err := c.ScanCertificate(ctx, h)
	if remote.KindOf(err) == remote.KindRefused {
		return e, false
	}
	if err != nil {
		e.Error = err.Error()
		return e, true
	}
	k := enrolledKey{Type: keyType(cert.Authority), Fingerprint: fingerprintOf(cert.Authority),
		Key: cert.Authority, Line: "@cert-authority " + knownName(h) + " " + cert.Authority,
		Certifies: &certified{Fingerprint: cert.Fingerprint, Principals: cert.Principals, ID: cert.ID}}
	if !cert.Until.IsZero() {
		k.Certifies.Until = &cert.Until
	}
	e.Keys = append(e.Keys, k)
	return e, true
}

// judgeAuthority compares an authority with those that the inventory or the file has for the host.
func (k *enrolledKey) judgeAuthority(h fleet.Host, book *knownFile) {
	same := func(line string) bool { return sameKey(line, k.Key) }
	k.inFile = slices.ContainsFunc(book.trust(h).HostCAs, same)
	k.State = keyNew
	if k.inFile || slices.ContainsFunc(h.HostCAs, same) {
		k.State = keyKnown
	}
}

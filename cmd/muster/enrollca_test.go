package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/cli/reach"
	"muster/testkit/sshtest"
)

// certify restarts the host of an enrolment with a certificate, and gives it further fields
// in the inventory.
func (e *enrolment) certify(a *sshtest.Authority, until time.Time, principal, fields string) {
	e.t.Helper()
	e.sshd = sshtest.StartSSHD(e.t, sshtest.Options{Certify: a.Host(until, principal)})
	e.line = fmt.Sprintf("[%s]:%d %s", e.sshd.Address, e.sshd.Port, e.sshd.HostKey)
	text := fmt.Sprintf("hosts:\n  - {name: fw1, address: %s, port: %d, user: root, known_hosts: %s%s}\n",
		e.sshd.Address, e.sshd.Port, e.known, fields)
	if err := os.WriteFile(e.inventory, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
}

func (e *enrolment) file(name, text string) string {
	e.t.Helper()
	path := filepath.Join(filepath.Dir(e.known), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		e.t.Fatal(err)
	}
	return path
}

// A host with a certificate needs no key of its own in the inventory.
func TestEnrollHostsWithACertificate(t *testing.T) {
	t.Parallel()
	e, ca := newEnrolment(t), sshtest.NewAuthority(t)
	e.certify(ca, time.Now().Add(time.Hour), "fw1", "")
	public := e.file("ca.pub", "# ours\n"+ca.Public+" ca@example.com\n")
	line := fmt.Sprintf("@cert-authority [%s]:%d %s", e.sshd.Address, e.sshd.Port, ca.Public)

	e.enroll(cli.ExitOK, " new\n"+e.line+"\n", "") // no authority vouches for it
	e.enroll(cli.ExitOK, "for fw1 until 2", "", "--ca", public)
	e.enroll(cli.ExitOK, ": no key to pin\n"+line+"\n", "", "--ca", public)
	e.enroll(cli.ExitOK, fmt.Sprintf("\nhost_ca: %q\n", ca.Public), "", "--ca", public, "--for", "inventory")
	e.enroll(cli.ExitOK, `"principals": [`, "", "--ca", public, "-o", "json")
	e.enroll(cli.ExitOK, ", written, certifies", "1 key written", "--ca", public, "--write", e.known)
	e.want(line)
	e.enroll(cli.ExitOK, " known, certifies", "0 keys written", "--ca", public, "--write", e.known)
	e.enroll(cli.ExitOK, " known, certifies", "0 keys written", "--write", e.known) // the file has the authority
	e.want(line)
	inv, err := new(reach.FileFlags).Inventory(t.Context(), []string{e.inventory})
	if err != nil || len(inv.WithoutKey()) > 0 {
		t.Errorf("the inventory with that file: %v", err)
	}

	if err := os.Remove(e.known); err != nil {
		t.Fatal(err)
	}
	e.certify(ca, time.Time{}, "fw1", fmt.Sprintf(", host_ca: %q", ca.Public))
	e.enroll(cli.ExitOK, " known, certifies", "", "--write", e.known)
	e.enroll(cli.ExitOK, "for fw1 without end: no key to pin\n", "")
	if _, err := os.Stat(e.known); err == nil {
		t.Error("what the inventory has was written once more")
	}
}

// An invalid certificate is no reason to pin the key in it.
func TestEnrollCertificatesThatDoNotHold(t *testing.T) {
	t.Parallel()
	e, ca, other := newEnrolment(t), sshtest.NewAuthority(t), sshtest.NewAuthority(t)
	trusted := fmt.Sprintf(", host_ca: %q", ca.Public)
	for _, tt := range []struct {
		name              string
		by                *sshtest.Authority
		until             time.Time
		principal, fields string
		words             string
	}{
		{"of another host", ca, time.Time{}, "fw2", trusted, `is for ["fw2"]`},
		{"ended", ca, time.Now().Add(-time.Hour), "fw1", trusted, "ended at"},
		{"of another authority", other, time.Time{}, "fw1", trusted, "is certified by"},
		{"of a revoked authority", ca, time.Time{}, "fw1",
			trusted + fmt.Sprintf(", revoked: %q", ca.Public), "which is revoked"},
	} {
		e.certify(tt.by, tt.until, tt.principal, tt.fields)
		t.Log(tt.name)
		e.enroll(cli.ExitNotAll, tt.words, tt.words, "--write", e.known)
		if _, err := os.Stat(e.known); err == nil {
			t.Errorf("%s: a key was written", tt.name)
		}
	}
	e.certify(ca, time.Time{}, "fw1", trusted)
	e.has("@revoked * " + e.sshd.HostKey)
	e.enroll(cli.ExitNotAll, "is revoked", "", "--write", e.known)
	e.want("@revoked * " + e.sshd.HostKey)
	if err := os.Remove(e.known); err != nil {
		t.Fatal(err)
	}

	// A host without a certificate shows its key as usual.
	plain := newEnrolment(t)
	plain.enroll(cli.ExitOK, " new\n"+plain.line+"\n", "", "--ca", e.file("ca.pub", ca.Public))
	plain.enroll(cli.ExitUsage, "", "has no public key", "--ca", e.file("empty", "\n# nothing\n"))
	plain.enroll(cli.ExitUsage, "", "bad:2: want a public key", "--ca", e.file("bad", "\nssh-ed25519 AAAA!\n"))
	plain.enroll(cli.ExitUsage, "", "no such file", "--ca", strings.TrimSuffix(e.known, "known_hosts")+"none")
}

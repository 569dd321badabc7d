package sshtest

import (
	"crypto/rand"
	"os"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// An Authority certifies host keys.
type Authority struct {
	t      testing.TB
	signer ssh.Signer
	Public string // "ssh-ed25519 AAAA…"
}

// NewAuthority makes one.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	path, public := NewKey(t)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{t, signer, public}
}

// Host is for Options.Certify: a certificate for these names, which ends at until, or never
// if that is zero.
func (a *Authority) Host(until time.Time, principals ...string) func(ssh.PublicKey) *ssh.Certificate {
	return func(key ssh.PublicKey) *ssh.Certificate {
		c := &ssh.Certificate{Key: key, CertType: ssh.HostCert, KeyId: "test",
			ValidPrincipals: principals, ValidBefore: ssh.CertTimeInfinity}
		if !until.IsZero() {
			c.ValidBefore = uint64(until.Unix())
		}
		if err := c.SignCert(rand.Reader, a.signer); err != nil {
			a.t.Fatal(err)
		}
		return c
	}
}

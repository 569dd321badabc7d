package remote

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"muster/fleet"
)

func TestKnownHosts(t *testing.T) {
	t.Parallel()
	ed, ecdsa, rsaKey := newSigner(t, "ed25519"), newSigner(t, "ecdsa"), newSigner(t, "rsa")
	hashed, patterned, gone := newSigner(t, "ed25519"), newSigner(t, "ed25519"), newSigner(t, "ed25519")
	authority := newSigner(t, "ed25519")
	known := readKnownHosts(t, strings.Join([]string{
		"# a comment",
		"",
		"fw001,10.0.0.1 " + keyLine(ed) + " root@fw001",
		"fw001 " + keyLine(ecdsa),
		"[fw001]:2222 " + keyLine(rsaKey),
		"[2001:db8::1]:2222 " + keyLine(ed),
		xknownhosts.HashHostname("fw002") + " " + keyLine(hashed),
		xknownhosts.HashHostname("[10.0.0.3]:2222") + " " + keyLine(hashed),
		"*.lab,!secret.lab " + keyLine(patterned),
		"fw003,fw004 " + keyLine(gone),
		"@revoked * " + keyLine(gone),
		"fw004 " + keyLine(ed),
		"@cert-authority *.ca " + keyLine(authority),
	}, "\n"))
	for _, test := range []struct {
		address string
		port    int
		want    []string
	}{
		{"fw001", 22, []string{keyLine(ed), keyLine(ecdsa)}},
		{"10.0.0.1", 22, []string{keyLine(ed)}},
		{"fw001", 2222, []string{keyLine(rsaKey)}},
		{"2001:db8::1", 2222, []string{keyLine(ed)}},
		{"fw002", 22, []string{keyLine(hashed)}},
		{"fw002", 23, nil},
		{"10.0.0.3", 2222, []string{keyLine(hashed)}},
		{"a.lab", 22, []string{keyLine(patterned)}},
		{"a.lab", 2222, []string{keyLine(patterned)}},
		{"secret.lab", 22, nil},
		{"fw003", 22, nil},
		{"fw004", 22, []string{keyLine(ed)}},
		{"a.ca", 22, nil},
		{"unknown", 22, nil},
		{"", 0, nil},
	} {
		if diff := cmp.Diff(test.want, known.Keys(test.address, test.port)); diff != "" {
			t.Errorf("%s port %d (-want +got):\n%s", test.address, test.port, diff)
		}
		for _, key := range known.Keys(test.address, test.port) {
			if err := CheckHostKey(key); err != nil {
				t.Errorf("%s: %v", test.address, err)
			}
		}
	}
}

func TestKnownHostsHaveAuthoritiesAndRevocations(t *testing.T) {
	t.Parallel()
	ed, ca, gone := newSigner(t, "ed25519"), newSigner(t, "ed25519"), newSigner(t, "ed25519")
	goneCA := newSigner(t, "ecdsa")
	known := readKnownHosts(t, strings.Join([]string{
		"@cert-authority *.ca,10.0.0.1 " + keyLine(ca) + " the authority",
		"@cert-authority *.ca " + keyLine(goneCA),
		"b.ca " + keyLine(ed),
		"@revoked * " + keyLine(gone),
		"@revoked * " + keyLine(goneCA),
	}, "\n"))
	for address, want := range map[string]fleet.Trust{
		"a.ca":     {HostCAs: []string{keyLine(ca)}},
		"10.0.0.1": {HostCAs: []string{keyLine(ca)}},
		"b.ca":     {HostKeys: []string{keyLine(ed)}, HostCAs: []string{keyLine(ca)}},
		"c":        {},
	} {
		for _, port := range []int{22, 2222} {
			if address == "b.ca" && port != 22 {
				want.HostKeys = nil // that line is of port 22
			}
			got := known.Trust(address, port)
			if len(got.Revoked) != 2 {
				t.Errorf("%s: revoked %q, want both", address, got.Revoked)
			}
			got.Revoked = nil
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s port %d (-want +got):\n%s", address, port, diff)
			}
		}
	}
}

func TestKnownHostsNamesTheBadLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, []byte("# fine\nfw001 ssh-ed25519 AAAA\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadKnownHosts(path)
	if err == nil || !strings.Contains(err.Error(), path+":2:") {
		t.Errorf("got %v, want the file and line 2", err)
	}
	_, err = ReadKnownHosts(filepath.Join(t.TempDir(), "missing"))
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v, want no such file", err)
	}
}

func FuzzKnownHosts(f *testing.F) {
	key := "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFlQqoRAMkr6t3fA4wG0vWvYI4HXk5nFt6C3m0nDLVyO"
	f.Add("fw001 " + key)
	f.Add("@revoked * " + key + "\nfw001,[fw001]:22,!x " + key)
	f.Add("|1|c2FsdA==|aGFzaA== " + key)
	f.Add("@cert-authority *,? " + key)
	f.Add("[fw001 " + key + "\n@revoked")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		known, err := ReadKnownHosts(path)
		if err != nil {
			return
		}
		for _, line := range known.Keys("fw001", 22) {
			if err := CheckHostKey(line); err != nil {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

func readKnownHosts(t *testing.T, text string) *KnownHosts {
	t.Helper()
	path := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := ReadKnownHosts(path)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/cli"
	"muster/cli/doctor"
	"muster/internal/fakefleet"
)

// certificate returns one in PEM that ends after a time.
func certificate(t *testing.T, left time.Duration) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the collector"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// examination runs doctor on a house.
type examination struct{ *house }

// finds returns the findings that are not well, and fails unless there are so many, or so many.
func (h examination) finds(want ...int) (bad []doctor.Finding) {
	h.t.Helper()
	var r doctor.Report
	code := h.query(&r, "doctor", "--config", h.file("muster.yaml"))
	for _, f := range r.Findings {
		// The machine of a test may have little space and no NTP.
		if f.Level != doctor.Well && f.Level != doctor.Note && f.Check != "disk" &&
			!strings.HasPrefix(f.Found, "NTP does not keep it") {
			bad = append(bad, f)
		}
	}
	if got := map[bool]int{true: cli.ExitOK, false: cli.ExitNotAll}[r.Well]; got != code {
		h.t.Errorf("exit %d, well %t", code, r.Well)
	}
	if !slices.Contains(want, len(bad)) {
		h.t.Fatalf("%d findings, want %v: %+v", len(bad), want, bad)
	}
	return bad
}

// wantFound looks for a finding with these words, with what is expected and what to do.
func wantFound(t *testing.T, list []doctor.Finding, check, found string) {
	t.Helper()
	for _, f := range list {
		if f.Check == check && strings.Contains(f.Found, found) && f.Expected != "" && f.Do != "" {
			return
		}
	}
	t.Errorf("no finding of %s with %q: %+v", check, found, list)
}

// A real Redis with settings that lose jobs, a key that others can read, a certificate that ends: each
// is found in a house that works, and nothing is found without them.
func TestDoctorFindsWhatIsWrongAndNothingElse(t *testing.T) {
	t.Parallel()
	_, inventory := pretend(t, fakefleet.Config{Hosts: 1})
	h := newHouse(t, inventory)
	h.master()
	examine := examination{h}.finds
	h.awaitHealth("ok")
	examine(0)

	h.redis.Do(t, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	h.redis.Do(t, "CONFIG", "SET", "appendonly", "no")
	list := examine(2)
	wantFound(t, list, "redis", "maxmemory-policy is allkeys-lru")
	wantFound(t, list, "redis", "appendonly is off")
	h.redis.Do(t, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	h.redis.Do(t, "CONFIG", "SET", "appendonly", "yes")

	h.write("ca.pem", certificate(t, 48*time.Hour))
	h.configure(map[string]any{"audit": map[string]any{"webhook_ca": h.file("ca.pem")}})
	wantFound(t, examine(1), "certificate", "CN=the collector ends")
	h.write("ca.pem", certificate(t, -time.Minute))
	wantFound(t, examine(1), "certificate", "CN=the collector ended")
	h.write("ca.pem", certificate(t, 1000*time.Hour))

	if err := os.Chmod(h.file("server.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	// The server may have seen it, too.
	list = examine(1, 2)
	wantFound(t, list, "file", "mode 0644")
	if want := "chmod 600 " + h.file("server.key"); !strings.HasPrefix(list[0].Do, want) {
		t.Errorf("to do: %q, want %q", list[0].Do, want)
	}
	if err := os.Chmod(h.file("server.key"), 0o600); err != nil {
		t.Fatal(err)
	}

	h.redis.Stop()
	list = examine(3) // also health says so, and it is not known which nodes there are
	wantFound(t, list, "redis", "refused")
	wantFound(t, list, "node", "refused")
	wantFound(t, list, "server", "redis cannot be used")
	if err := h.redis.Start(); err != nil {
		t.Fatal(err)
	}
}

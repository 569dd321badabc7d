package certs_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/certs"
)

func TestCertificatesAreForHTTPSAndReadWhole(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status": "ok"}`))
	}))
	defer s.Close()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})), 0o600)
	bad, open := write("bad", "swordfish", 0o600), write("open", "swordfish", 0o644)
	for name, c := range map[string]struct {
		url  string
		of   certs.Client
		want []string
	}{
		"nothing":            {s.URL, certs.Client{}, nil},
		"plain":              {"http://127.0.0.1:1", certs.Client{CA: ca}, []string{"are for https://", "127.0.0.1:1"}},
		"no such authority":  {s.URL, certs.Client{CA: filepath.Join(dir, "none")}, []string{"MUSTER_CA: "}},
		"no authority in it": {s.URL, certs.Client{CA: bad}, []string{"has no certificate in PEM"}},
		"half":               {s.URL, certs.Client{Cert: bad}, []string{"want both or none"}},
		"a key for all":      {s.URL, certs.Client{Cert: bad, Key: open}, []string{"MUSTER_CLIENT_KEY: ", "mode 0644"}},
		"no certificate":     {s.URL, certs.Client{Cert: bad, Key: bad}, []string{"MUSTER_CLIENT_CERT, MUSTER_CLIENT_KEY: "}},
		"all at once":        {s.URL, certs.Client{CA: bad, Key: bad}, []string{"MUSTER_CA: ", "want both or none"}},
	} {
		_, err := c.of.Config(c.url)
		if (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "swordfish") {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
	if c, err := (certs.Client{}).Config("http://127.0.0.1:1"); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
	config, err := certs.Client{CA: ca}.Config(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*http.Transport{"an unknown authority": {}, "its own": {TLSClientConfig: config}} {
		res, err := (&http.Client{Transport: c}).Get(s.URL)
		if (err == nil) != (name == "its own") {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			res.Body.Close()
		}
		c.CloseIdleConnections()
	}
}

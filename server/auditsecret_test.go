package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/api"
	"muster/server"
	"muster/testkit/sqltest"
)

// Secrets are planted wherever an operator can put one: as an argument, in a token's place, pasted
// into a name and into a reason. They are in no file of the log: neither in the tables nor in the
// spool.
func TestNoSecretIsInTheAuditLog(t *testing.T) {
	t.Parallel()
	const token = "muster_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789abcdefg"
	p := sqltest.StartPostgres(t)
	for name, away := range map[string]bool{"in the tables": false, "in the spool": true} {
		t.Run(name, func(t *testing.T) {
			cfg, dir := sqltest.SQLite(t), filepath.Join(t.TempDir(), "audit")
			if away {
				cfg = p.Config(t)
			}
			a := newArchive(t, cfg, dir)
			w := start(t, setup{runbooks: []string{withSecret}, more: func(d *server.Deps) {
				a.write(d)
				d.SecretKeys = keyring(1)
			}})
			if away {
				p.Kill()
			}
			w.submit(api.Submit{ID: "0123456789", Runbook: "password", On: "fw001",
				Secrets: map[string]string{"password": swordfish}})
			w.raw("POST", "/v1/zones/default/pause", map[string]any{"reason": "the token is " + token}, nil)
			w.raw("DELETE", "/v1/tokens/"+token, nil, nil)
			w.raw("POST", "/v1/halt", nil, http.Header{"Authorization": {"Bearer " + token}})
			var made api.TokenAnswer
			w.call("POST", "/v1/tokens", api.TokenRequest{Name: "carol"}, &made)
			if err := a.Idle(t.Context()); err != nil {
				t.Fatal(err)
			}
			var all strings.Builder
			for _, pattern := range []string{dir + "/*", strings.TrimPrefix(cfg.URL, "sqlite://") + "*"} {
				files, err := filepath.Glob(pattern)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range files {
					data, err := os.ReadFile(f)
					if err != nil {
						t.Fatal(err)
					}
					all.Write(data)
				}
			}
			if !strings.Contains(all.String(), "task.submit") || !strings.Contains(all.String(), "zone.pause") {
				t.Fatal("the log is not where the test looks for it")
			}
			for _, secret := range []string{swordfish, token, made.Token} {
				sum := sha256.Sum256([]byte(secret))
				for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)),
					hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:])} {
					if form == "" || strings.Contains(all.String(), form) {
						t.Errorf("the log has %q", form)
					}
				}
			}
		})
	}
}

package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"
	"filippo.io/age/armor"

	"muster/fleet"
)

const swordfish = "swordfish-of-1932"

// A house has the sources of a node, and their files.
type house struct {
	*Sources
	t   testing.TB
	dir string
}

// newHouse makes the sources of a node with rules, in which DIR stands for a folder of their own.
func newHouse(t testing.TB, rules string) house {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Parse(fleet.Source{Name: "references.yaml", Data: []byte(strings.ReplaceAll(rules, "DIR", dir))})
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"s", "cred"} {
		if err := os.Mkdir(dir+"/"+folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return house{New("node1", func() (*Config, error) { return cfg, nil }, dir+"/cred"), t, dir}
}

// fetch returns the secret of a reference for a job with the runbook on the host, or the error.
func (h house) fetch(ref, runbook, host string) string {
	h.t.Helper()
	on := fleet.Host{Name: host, Customer: "acme", Zone: "default", Labels: map[string]string{"role": "fw"}}
	if host == "odd" { // no inventory has such a host
		on.Labels = map[string]string{"up": "..", "x": "a/b"}
	}
	text, err := h.Fetch(h.t.Context(), Ask{Reference: strings.ReplaceAll(ref, "DIR", h.dir), Runbook: runbook, Host: on})
	if err != nil && (text != "" || strings.Contains(err.Error(), "\n")) {
		h.t.Errorf("%s: the text %q with the error %q", ref, string(text), err)
	}
	if err != nil {
		return strings.ReplaceAll(err.Error(), h.dir, "DIR")
	}
	return string(text)
}

func (h house) file(name, text string, mode os.FileMode) { write(h.t, h.dir+"/"+name, text, mode) }

const someRules = `
allow:
  - refs: ["file:DIR/s/*", "cred:*", "age:DIR/s/all.age"]
    runbooks: [firmware, "dns*"]
    hosts: role=fw
  - refs: ["file:DIR/s/{{host.name}}/**", "vault:kv/x#y"]
age: {identities: DIR/age.key}
`

func TestOnlyAllowedReferencesAreResolved(t *testing.T) {
	t.Parallel()
	h := newHouse(t, someRules)
	h.file("s/db", swordfish+"\r\n", 0o400)
	h.file("outside", swordfish, 0o400)
	h.file("cred/sudo", swordfish+"\n", 0o440)
	h.file("s/open", swordfish, 0o440)
	h.file("s/empty", "\n", 0o400)
	h.file("s/binary", "a\x00"+swordfish, 0o400)
	h.file("s/large", strings.Repeat("a", secretMax+1), 0o400)
	for name, to := range map[string]string{"out": "../outside", "passwd": "/etc/passwd", "in": "db"} {
		if err := os.Symlink(to, h.dir+"/s/"+name); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"/s/fw1", "/s/folder"} {
		if err := os.Mkdir(h.dir+dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.file("s/fw1/pw", swordfish, 0o400)
	for _, c := range []struct{ ref, runbook, host, want string }{
		{"file:DIR/s/db", "firmware", "fw1", swordfish},
		{"file:DIR/s/db", "dns-keys", "fw1", swordfish},
		{"file:DIR/s/in", "firmware", "fw1", swordfish},
		{"cred:sudo", "firmware", "fw1", swordfish},
		{"file:DIR/s/{{host.name}}/pw", "any", "fw1", swordfish},
		{"file:DIR/s/fw1/pw", "any", "fw2",
			"no rule of references.yaml allows it for runbook any on host fw2: if it is right to"},
		{"file:DIR/s/db", "other", "fw1", "no rule of references.yaml allows it for runbook other"},
		{"file:DIR/s/{{host.label.up}}/outside", "firmware", "odd", "the reference has a part of its path"},
		{"file:DIR/s/{{host.label.x}}", "firmware", "odd", "{{host.label.x}}: the value \"a/b\" has other characters"},
		{"file:DIR/s/{{host.label.none}}", "firmware", "fw1", "host fw1 has none: give it one"},
		{"file:DIR/outside", "firmware", "fw1", "no rule of"}, {"file:/etc/passwd", "firmware", "fw1", "no rule of"},
		{"file:DIR/s/../outside", "firmware", "fw1", "the reference has a part"},
		{"file:DIR/s/out", "firmware", "fw1", "path escapes from parent"},
		{"file:DIR/s/passwd", "firmware", "fw1", "path escapes from parent"},
		{"file:DIR/s/none", "firmware", "fw1", "no such file"},
		{"file:DIR/s/folder", "firmware", "fw1", "it is a folder"},
		{"file:DIR/s/open", "firmware", "fw1", "has mode 0440, so others can use it: chmod 400"},
		{"file:DIR/s/empty", "firmware", "fw1", "the secret is empty"},
		{"file:DIR/s/binary", "firmware", "fw1", "the secret is no text"},
		{"file:DIR/s/large", "firmware", "fw1", "the secret has more than 65536 bytes"},
		{"cred:none", "firmware", "fw1", "LoadCredential=none:"}, {"cred:sudo", "other", "fw1", "no rule of"},
		{"age:DIR/s/all.age", "firmware", "fw1", "age.identities: open DIR/age.key: no such file"},
		{"vault:kv/x#y", "any", "fw1", "references.yaml has no vault"},
		{"swordfish-of-1932", "any", "fw1", "a reference on node node1: the reference names no known place"},
	} {
		got := h.fetch(c.ref, c.runbook, c.host)
		switch {
		case c.want == swordfish && got != swordfish:
			t.Errorf("%s for %s on %s: %s", c.ref, c.runbook, c.host, got)
		case c.want != swordfish && (!strings.Contains(got, c.want) || strings.Contains(got, swordfish) ||
			!strings.Contains(got, "on node node1: ")):
			t.Errorf("%s for %s on %s: got %q, want %q", c.ref, c.runbook, c.host, got, c.want)
		}
	}
}

func TestWithoutASignedOrderNothingIsResolved(t *testing.T) {
	t.Parallel()
	for _, unsigned := range []bool{false, true} {
		h := newHouse(t, fmt.Sprintf("unsigned: %t\nallow: [{refs: [\"file:DIR/s/*\"]}]\n", unsigned))
		h.file("s/db", swordfish, 0o400)
		text, err := h.Fetch(t.Context(), Ask{Reference: "file:" + h.dir + "/s/db", Signed: errors.New("nobody has signed")})
		if unsigned && (err != nil || text != swordfish) {
			t.Errorf("with unsigned: true: %v", err)
		}
		if !unsigned && (err == nil || !strings.Contains(err.Error(), "no signed order holds") || text != "") {
			t.Errorf("without an order: %v", err)
		}
	}
}

func TestANodeWithoutRulesResolvesNothing(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]*Sources{
		"this node resolves no references": New("n", nil, ""),
		"line 3: bad":                      New("n", func() (*Config, error) { return nil, errors.New("line 3: bad") }, ""),
		"no rule of": New("n", func() (*Config, error) {
			return Parse(fleet.Source{Name: "r.yaml", Data: []byte("allow: []\n")})
		}, ""),
	} {
		if _, err := s.Fetch(t.Context(), Ask{Reference: "cred:x"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// sealedBy encrypts a text as the command age does.
func sealedBy(t testing.TB, text string, to age.Recipient, armoured bool) string {
	t.Helper()
	var out bytes.Buffer
	a := armor.NewWriter(&out)
	var dest interface{ Write([]byte) (int, error) } = &out
	if armoured {
		dest = a
	}
	w, err := age.Encrypt(dest, to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Write([]byte(text))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	if armoured {
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestFilesOfAgeAreDecryptedByTheNode(t *testing.T) {
	t.Parallel()
	own, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t, "allow: [{refs: [\"age:DIR/s/*\"]}]\nage: {identities: DIR/age.key}\n")
	h.file("age.key", "# created\n"+own.String()+"\n", 0o400)
	h.file("s/whole.age", sealedBy(t, swordfish+"\n", own.Recipient(), false), 0o644)
	h.file("s/text.age", sealedBy(t, `{"db": "`+swordfish+`", "n": 1, "no": null}`, own.Recipient(), true), 0o644)
	h.file("s/foreign.age", sealedBy(t, swordfish, other.Recipient(), false), 0o644)
	cut := sealedBy(t, swordfish, own.Recipient(), false)
	h.file("s/cut.age", cut[:len(cut)-3], 0o644)
	h.file("s/plain.age", swordfish, 0o644)
	check := func(cases map[string]string) {
		t.Helper()
		for ref, want := range cases {
			got := h.fetch(ref, "any", "fw1")
			if want == swordfish && got != want || !strings.Contains(got, want) ||
				want != swordfish && strings.Contains(got, swordfish) {
				t.Errorf("%s: got %q, want %q", ref, got, want)
			}
		}
	}
	check(map[string]string{"age:DIR/s/whole.age": swordfish, "age:DIR/s/text.age#db": swordfish,
		"age:DIR/s/text.age#web": "it has no field web", "age:DIR/s/text.age#n": "its field n is no text",
		"age:DIR/s/text.age#no": "its field no is no text", "age:DIR/s/whole.age#db": "it is no JSON object",
		"age:DIR/s/foreign.age": "encrypted for other keys", "age:DIR/s/cut.age": "is damaged",
		"age:DIR/s/plain.age": "or is no file of age"})
	h.file("age.key", own.String(), 0o440)
	check(map[string]string{"age:DIR/s/whole.age": "age.identities: DIR/age.key has mode 0440"})
	h.file("age.key", swordfish+"\n", 0o400)
	check(map[string]string{"age:DIR/s/whole.age": "age.identities: DIR/age.key is no file of age-keygen"})
}

func TestAFileOfRulesIsRefusedWithAllItsMistakes(t *testing.T) {
	t.Parallel()
	_, err := Parse(fleet.Source{Name: "r.yaml", Data: []byte(`allow:
  - runbooks: ["[a"]
  - refs: ["file:/*", env]
    hosts: "role=("
    host: x
  - refs: []
age: {identities: relative}
unsigned: perhaps
vault:
  address: http://vault.example.net:8200
  timeout: 1h
  approle: {role_id: /a, mount: ../sys}
  jwt: {role: a}
vaults: {}
`)})
	want := []string{"r.yaml:2: refs is missing", `r.yaml:2: runbooks: "[a"`,
		"r.yaml:3: refs: \"file:/*\": the first segment",
		"r.yaml:3: refs: \"env\": the reference names no known place", "r.yaml:4: hosts: ",
		"r.yaml:5: unknown key \"host\" of a rule",
		"r.yaml:6: refs is empty: want patterns",
		"r.yaml:7: identities: \"relative\": want the absolute path",
		"r.yaml:8: unsigned: \"perhaps\": want true",
		"r.yaml:10: vault: want one login", "r.yaml:10: address: \"http://vault.example.net:8200\": want https; http only",
		"r.yaml:11: timeout: \"1h\": want a time", "r.yaml:14: unknown key \"vaults\" of the file"}
	if err == nil {
		t.Fatal("no mistake was found")
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in\n%v", w, err)
		}
	}
	cfg, err := Parse(fleet.Source{Name: "r.yaml", Data: []byte(`vault:
  address: https://vault.example.net:8200
  ca: /etc/muster/ca.pem
  namespace: ops
  mounts: [team/kv/]
  timeout: 5s
  jwt: {role: muster, token: /run/jwt, mount: kubernetes}
`)})
	if err != nil || cfg.Vault.Login != "jwt" || cfg.Vault.Mounts[0] != "team/kv" || cfg.Vault.Mount != "kubernetes" ||
		cfg.Vault.Timeout.Seconds() != 5 || cfg.Vault.Namespace != "ops" {
		t.Errorf("read as %+v, %v", cfg, err)
	}
}

func TestTheExampleOfRulesIsRight(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../etc/examples/references.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Parse(fleet.Source{Name: "references.yaml", Data: data})
	if err != nil || len(cfg.rules) != 4 || cfg.Vault == nil || cfg.Identities == "" {
		t.Errorf("read as %+v, %v", cfg, err)
	}
}

package bundle

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/settings"
)

// Each planted secret begins with this word, and is found by it.
const planted = "Planted4711"

// Whatever a key of the configuration holds, only what its row allows is shown. A new key with texts
// needs a row.
func TestTheConfigurationIsShownWithoutSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "muster.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`
redis: {url: "redis://muster:Planted4711-redis@r.example:6379/0", plain: true, password: "",
  sentinel: {username: sam, password: Planted4711-sentinel}, timeout: 7s}
server: {listen: ["unix:/run/x"], oidc: {issuer: "https://idp.example/x", client_id: me}}
history: {url: "postgres://muster@sql.example/muster?options=Planted4711-options"}
audit: {sinks: ["https://hooks.example/services/Planted4711-path?x=Planted4711-query#entries"]}
inventory: ["https://u:Planted4711-inventory@cmdb.example/all?key=Planted4711-key", "/bin/list --token Planted4711-arg"]
`)
	t.Setenv("MUSTER_REDIS_PASSWORD", "")
	set, err := settings.Read(settings.Source{File: file, Env: os.Environ()})
	if err != nil && set.Redis.URL == "" {
		t.Fatal(err)
	}
	got := configurationOf(set)
	for key, want := range map[string]any{"redis.url": "redis://r.example:6379/0", "redis.timeout": "7s",
		"redis.plain": true, "redis.sentinel.password": "(set)", "redis.sentinel.username": "sam",
		"history.url": "postgres://sql.example/muster", "redis.password": ""} {
		if got[key] != want {
			t.Errorf("%s is shown as %v, want %v", key, got[key], want)
		}
	}
	for _, want := range []string{"https://hooks.example/ (path not shown)", "https://cmdb.example/all",
		"/bin/list (more, not shown)"} {
		if !slices.Contains(got["audit.sinks"].([]string), want) && !slices.Contains(got["inventory"].([]string), want) {
			t.Errorf("%q is missing: %v, %v", want, got["audit.sinks"], got["inventory"])
		}
	}
	text, err := newScrubber(nil).json(got)
	if err != nil || strings.Contains(string(text), planted) {
		t.Errorf("%v: a secret is shown: %s", err, text)
	}
	if keys := slices.Sorted(maps.Keys(got)); !slices.Equal(keys, settings.Keys()) {
		t.Errorf("shown are %v, but the keys are %v", keys, settings.Keys())
	}
	for key, value := range got {
		_, has := shown[key]
		if text := fmt.Sprint(value); !has && (text == "(set)" || text == "(not shown)") {
			t.Errorf("%s has texts and no row in the table shown: say how much of it may be shown", key)
		}
	}
}

// A known secret is covered wherever it stands, and so is what looks like one; other words stay.
func TestSecretsAreCoveredInTexts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "muster.yaml")
	text := "redis:\n  password: 'Planted4711 \"with\" quotes'\n  url: redis://u:Planted4711%2Furl@h/0\n  timeout: [\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newScrubber(secretsOf(file, settings.Settings{}))
	for _, text := range []string{
		`dial: Planted4711 "with" quotes`, `dial: "Planted4711 \"with\" quotes"`, "WRONGPASS Planted4711/url",
		"redis://u:Planted4711%2Furl@h/0", "GET https://hooks.example/x?a=Planted4711&b=1",
		"Authorization: Bearer Planted4711abc", "bearer Planted4711abc", "token=Planted4711", `"api_key": "Planted4711"`,
		"mst_abcdefghijkl_Planted4711", "--password=Planted4711", "Cookie: a=Planted4711; b=Planted4711",
		"-----BEGIN OPENSSH PRIVATE KEY-----\nPlanted4711\n-----END OPENSSH PRIVATE KEY-----\n",
		"-----BEGIN PRIVATE KEY-----\nPlanted4711\n", "AGE-SECRET-KEY-1Planted4711",
	} {
		if got := s.text(text); strings.Contains(got, planted) || !strings.Contains(got, "(secret)") {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, text := range []string{"muster_tokens_total 3", "redis.password_file: /etc/muster/redis.pw is missing",
		"http://h.example:7070/v1/health", "task 0wcy7y2fb2:fw001", "a token is needed"} {
		if got := s.text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

// Words of people are covered where logs and lists have them; addresses of mail keep their host.
func TestWordsOfPeopleAreCovered(t *testing.T) {
	t.Parallel()
	s := newScrubber(nil)
	for text, want := range map[string]string{
		"halted by os:root: ask Planted4711":                        "halted by os:root: (secret)",
		"zone eu is paused by alice: Planted4711; and: Planted4711": "zone eu is paused by alice: (secret)",
		"550 anna.meier@mail.example.org is away":                   "550 (secret)@mail.example.org is away",
		"ssh root@10.0.0.1, getty@tty1, muster@v1.2.3":              "ssh root@10.0.0.1, getty@tty1, muster@v1.2.3",
		`muster_gone_total{reason="event_signature"} 2`:             `muster_gone_total{reason="event_signature"} 2`,
	} {
		if got := s.text(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	file := filepath.Join(t.TempDir(), "log")
	log := `task accepted: task=a arguments="cmd='a \"Planted4711\" Planted4711'" on=fw1
halted: reason=Planted4711 zone=eu
{"@message":"halted","reason":"it is, Planted4711","zone":"eu"}
closed: words=
  | Planted4711
  | Planted4711
cut: reason="Planted4711 …
next: hosts=1
`
	if err := os.WriteFile(file, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := site{flags: flags{logs: []string{file}}}.logs(t.Context())
	text, _ := got.(string)
	if err != nil || strings.Contains(text, planted) {
		t.Errorf("%v: %s", err, text)
	}
	for _, want := range []string{"task=a arguments=(secret) on=fw1", "reason=(secret) zone=eu", `,"zone":"eu"}`,
		"next: hosts=1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing: %s", want, text)
		}
	}
}

func TestLongLinesAndLogsAreCut(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(file, []byte(strings.Repeat("0123456789abcde\n", logMax/16+100)), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := tail(file)
	if err != nil || len(text) > logMax || len(text) < logMax-16 || !strings.HasPrefix(text, "0123") {
		t.Errorf("%v: %d bytes of %q…", err, len(text), text[:20])
	}
	if got := short("ä" + strings.Repeat("ä", logLineMax) + "\nb\n"); len(got) > logLineMax+10 ||
		!strings.HasSuffix(got, " …\nb\n") {
		t.Errorf("%d bytes: %q", len(got), got[len(got)-20:])
	}
}

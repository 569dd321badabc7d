package scripts_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"muster/fleet"
	"muster/internal/seal"
	"muster/scripts"
)

// withSecret is a runbook with a secret and one step.
func withSecret(run string) string {
	return "name: a\narguments:\n  pw: {type: secret, max_length: 100}\n  who: {type: string, default: root}\n" +
		"steps:\n  - name: s\n    run: |\n      " + strings.ReplaceAll(run, "\n", "\n      ") + "\n"
}

func TestSecretsAreRefusedWhereOthersWouldReadThem(t *testing.T) {
	t.Parallel()
	const argv, environ = "x:8:", "would be in the environment"
	step := func(text string) string {
		return "name: a\narguments:\n  pw: {type: secret}\nsteps:\n" + text
	}
	refuses(t, []refusal{
		{"an argument", withSecret("curl -u {{pw}} x"), "x:8:15: {{pw}} is secret, and would be an argument of a program"},
		{"within quotes", withSecret(`curl -u "u:"{{pw}} x`), argv},
		{"of a substitution", withSecret(`curl -u "$(printf %s {{pw}})"`), "would be an argument"},
		{"the command", withSecret("{{pw}}"), "would be an argument"},
		{"of exec", withSecret("exec id {{pw}}"), "would be an argument"},
		{"of eval", withSecret("eval {{pw}}"), "would be an argument"},
		{"exported", withSecret("export PW={{pw}}"), environ},
		{"before a command", withSecret("PGPASSWORD={{pw}} psql"), environ},
		{"in a pipe", withSecret("true | tee {{pw}}"), "would be an argument"},
		{"when", step("  - {name: s, run: ls, when: ['{{pw}} == x']}"), "x:5:31: {{pw}} is secret: only the text"},
		{"a path", step("  - {name: s, upload: {content: a, to: '/{{pw}}'}}"), "{{pw}} is secret: only the text"},
		{"confirm", step("  - {name: s, confirm: {apply: 'printf %s {{pw}}', rollback: ls}}"), "{{pw}} is secret: only"},
		{"verify", step("  - {name: s, verify: {check: 'printf %s {{pw}}'}}"), "{{pw}} is secret: only"},
		{"library", "name: a\narguments:\n  pw: {type: secret}\nlibrary: printf %s {{pw}}\nsteps: [{name: s, run: ls}]\n",
			"x:4:20: {{pw}} is secret: only the text"},
		{"a file", step("  - {name: s, upload: {from: pw, to: /x}}"), `argument "pw" is of type secret, want file`},
		{"a default", "name: a\narguments:\n  pw: {type: secret, default: swordfish}\nsteps: [{name: s, run: ls}]\n",
			"x:3:22: default means nothing for type secret"},
	})
}

func TestSecretsAreTakenWhereTheShellKeepsThem(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`printf '%s\n' {{pw}} | passwd --stdin {{who}}`,
		`pw={{pw}}` + "\n" + `curl -K - x <<E` + "\n" + `user = "u:$pw"` + "\nE",
		`(umask 077; printf %s {{pw}} > /tmp/x)`,
		`[ {{pw}} = "$(cat /etc/x)" ]`,
		`case {{pw}} in *[0-9]*) ;; *) exit 1 ;; esac`,
		`x=$(printf %s {{pw}} | sha256sum)`,
		"login() { printf %s \"$1\"; }\nlogin {{pw}}",
		`for p in {{pw}} {{who}}; do :; done`,
	} {
		if _, err := scripts.Parse("x", []byte(withSecret(text))); err != nil {
			t.Errorf("%s\n%v", text, err)
		}
	}
	library := strings.Replace(withSecret("login {{pw}}"), "steps:", "library: 'login() { cat; }'\nsteps:", 1)
	if _, err := scripts.Parse("x", []byte(library)); err != nil {
		t.Errorf("a function of the library: %v", err)
	}
}

func TestBindTakesSecretsAsSecretsOnly(t *testing.T) {
	t.Parallel()
	r := mustParse(t, "name: a\narguments:\n"+
		"  pw: {type: secret, pattern: '[a-z0-9 -]+', max_length: 20, description: of root}\n"+
		"  who: {type: string, default: root}\nsteps: [{name: s, run: 'printf %s {{pw}}'}]\n")
	for _, c := range []struct {
		name  string
		given scripts.Given
		want  string // empty: it is right
	}{
		{"right", scripts.Given{Secrets: map[string]seal.Text{"pw": "swordfish"}}, ""},
		{"missing", scripts.Given{},
			`argument "pw" is missing: want a value of type secret: of root; give it as --arg pw=@FILE`},
		{"as a text", scripts.Given{Args: map[string]string{"pw": "swordfish"}}, "stands in the list of processes"},
		{"both", scripts.Given{Args: map[string]string{"pw": "swordfish"},
			Secrets: map[string]seal.Text{"pw": "swordfish"}}, "stands in the list of processes"},
		{"empty", scripts.Given{Secrets: map[string]seal.Text{"pw": ""}}, "the secret is empty"},
		{"too long", scripts.Given{Secrets: map[string]seal.Text{"pw": "swordfish swordfish swordfish"}}, "more than 20"},
		{"another pattern", scripts.Given{Secrets: map[string]seal.Text{"pw": "SWORDFISH"}}, "does not match"},
		{"NUL", scripts.Given{Secrets: map[string]seal.Text{"pw": "swordfish\x00"}}, "the secret has a NUL"},
		{"no UTF-8", scripts.Given{Secrets: map[string]seal.Text{"pw": "swordfish\xff"}}, "the secret is not UTF-8"},
		{"no such", scripts.Given{Secrets: map[string]seal.Text{"pw": "swordfish", "pv": "swordfish"}},
			`has no argument "pv"`},
		{"of another type", scripts.Given{Secrets: map[string]seal.Text{"pw": "x", "who": "swordfish"}},
			`argument "who" is of type string, not secret`},
		{"a file", scripts.Given{Files: map[string][]byte{"pw": []byte("swordfish")}}, `argument "pw" is missing`},
	} {
		v, err := r.BindGiven(c.given)
		if err == nil {
			coded, bad := json.Marshal(r.Freeze(v))
			if c.want != "" || bad != nil || bytes.Contains(coded, []byte("swordfish")) {
				t.Errorf("%s: no mistake, and frozen it is %s, %v", c.name, coded, bad)
			}
			continue
		}
		if c.want == "" || !strings.Contains(err.Error(), c.want) ||
			strings.Contains(strings.ToLower(err.Error()), "swordfish") {
			t.Errorf("%s: %v, want %q and nothing of the secret", c.name, err, c.want)
		}
	}
}

// sealed binds a secret and freezes it as a task carries it, sealed by turning it around.
func sealedOf(t *testing.T, text, secret string) scripts.Frozen {
	t.Helper()
	r := mustParse(t, text)
	v, err := r.BindGiven(scripts.Given{Secrets: map[string]seal.Text{"pw": seal.Text(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Freeze(v)
	if err := f.Check(fleet.Host{Name: "h"}); err != nil {
		t.Fatalf("before it is sealed: %v", err)
	}
	if err := f.Seal(func(_ string, text seal.Text) (string, error) { return turned(string(text)), nil }); err != nil {
		t.Fatal(err)
	}
	coded, err := json.Marshal(f)
	if err != nil || f.Values.Plain != nil || strings.Contains(string(coded), secret) {
		t.Fatalf("sealed it is %s, %v", coded, err)
	}
	var again scripts.Frozen
	if err := json.Unmarshal(coded, &again); err != nil {
		t.Fatal(err)
	}
	return again
}

func turned(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func open(_, sealed string) (seal.Text, error) {
	text, err := base64.StdEncoding.DecodeString(sealed)
	return seal.Text(text), err
}

func TestStepGetsItsSecretOnStdinAndNowhereElse(t *testing.T) {
	t.Parallel()
	const secret = "it's \"$(id)\" `id` \\ \n*\n'two\n\nlines' ä "
	f := sealedOf(t, withSecret(`printf '<%s>' {{pw}} "x"{{pw}}"y"
cat
env
tr '\0' ' ' < /proc/$$/cmdline
echo "$muster_secret_all"`), secret)
	a, err := f.Step(0, fleet.Host{Name: "h"}, scripts.Context{})
	if err != nil {
		t.Fatal(err)
	}
	texts, err := f.OpenSecrets(open)
	if err != nil {
		t.Fatal(err)
	}
	input, err := a.SecretInput(texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, shell := range []string{"dash", "bash", "sh"} {
		c := exec.CommandContext(t.Context(), shell, "-c", a.Shell)
		c.Stdin = bytes.NewReader(input)
		out, err := c.CombinedOutput()
		if want := "<" + secret + "><x" + secret + "y>"; err != nil || !strings.HasPrefix(string(out), want) ||
			strings.Count(string(out), secret) != 2 {
			t.Errorf("%s: %v\ngot  %q\nwant %q, and nothing more of it", shell, err, out, want)
		}
		for _, cut := range []int{0, 5, len(input) / 3, len(input) / 2, len(input) - 9, len(input) - 2} {
			c := exec.CommandContext(t.Context(), shell, "-c", a.Shell)
			c.Stdin = bytes.NewReader(input[:cut])
			out, err := c.CombinedOutput()
			var end *exec.ExitError
			if !errors.As(err, &end) || end.ExitCode() != scripts.SecretsMissing ||
				strings.TrimSpace(string(out)) != scripts.SecretsLost {
				t.Fatalf("%s, cut at byte %d of %d: %v, %q", shell, cut, len(input), err, out)
			}
		}
	}
}

func TestSecretThatIsNotThereIsNotGuessed(t *testing.T) {
	t.Parallel()
	f := sealedOf(t, withSecret("printf %s {{pw}}"), "swordfish")
	if _, err := f.OpenSecrets(func(string, string) (seal.Text, error) {
		return "", errors.New("another key")
	}); err == nil || !strings.Contains(err.Error(), `argument "pw": another key`) {
		t.Errorf("OpenSecrets = %v", err)
	}
	a, err := f.Step(0, fleet.Host{Name: "h"}, scripts.Context{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.SecretInput(nil); err == nil || !strings.Contains(err.Error(), `"pw" is not in the task`) {
		t.Errorf("SecretInput = %v", err)
	}
	f.Values.Secrets = nil
	if a, err := f.Step(0, fleet.Host{Name: "h"}, scripts.Context{}); err == nil {
		t.Errorf("without its secret the step is %q", a.Shell)
	}
}

func TestAReferenceStandsInPlaceOfASecret(t *testing.T) {
	t.Parallel()
	book := mustParse(t, `name: x
arguments: {password: {type: secret, max_length: 5}}
steps: [{name: use, run: "printf %s {{password}}"}]
`)
	v, err := book.BindGiven(scripts.Given{Args: map[string]string{"password": "ref:vault:kv/fw#pw",
		scripts.BecomePassword: "ref:cred:sudo"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"password": "ref:vault:kv/fw#pw", scripts.BecomePassword: "ref:cred:sudo"}
	if len(v.Plain) != 0 || len(v.Args) != 0 || !maps.Equal(v.Secrets, want) {
		t.Errorf("bound: %+v", v)
	}
	f := book.Freeze(v)
	f.Values.Plain = map[string]seal.Text{"other": "y"}
	err = f.Seal(func(string, seal.Text) (string, error) { return "s1.x.y", nil })
	want["other"] = "s1.x.y"
	if err != nil || !maps.Equal(f.Values.Secrets, want) {
		t.Errorf("sealed: %+v, %v", f.Values.Secrets, err)
	}
	for _, c := range []struct {
		given scripts.Given
		want  string
	}{
		{scripts.Given{Args: map[string]string{"password": "hunter2"}}, "given as a text"},
		{scripts.Given{Args: map[string]string{"password": "ref:hunter2"}}, "names no known place"},
		{scripts.Given{Args: map[string]string{"password": "ref:cred:x"},
			Secrets: map[string]seal.Text{"password": "hunter2"}}, "twice"},
		{scripts.Given{Args: map[string]string{"password": "ref:cred:x", scripts.BecomePassword: "hunter2"}},
			"given as a text"},
		{scripts.Given{Args: map[string]string{"password": "ref:cred:x"},
			Secrets: map[string]seal.Text{scripts.BecomePassword: "a\nhunter2"}}, "the password of sudo has more than one line"},
	} {
		_, err := book.BindGiven(c.given)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v, want %q", c.given.Args, err, c.want)
		}
	}
	// A secret that begins as a reference does is a secret.
	v, err = book.BindGiven(scripts.Given{Secrets: map[string]seal.Text{"password": "ref:c"}})
	if err != nil || len(v.Secrets) != 0 || v.Plain["password"] != "ref:c" {
		t.Errorf("a secret like a reference: %+v, %v", v.Secrets, err)
	}
}

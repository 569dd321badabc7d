package ingress

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/fleet"
)

// secretText is the secret of all recorded requests but that of Standard Webhooks.
const secretText = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"

// sentAt is the time of the recorded request of Standard Webhooks.
var sentAt = time.Unix(1795863634, 0)

// recorded are sources, each with what its recorded request is. Gitea 1.26.0 itself has sent
// gitea.http, after a push. The others have the form in which the sender documents it or, for NetBox
// 4.6.8 and GitLab, in which its source makes it, and openssl made the MACs.
var recorded = []struct {
	name, yaml, secret string
	want               Delivery // without the id
}{
	{"github", "preset: github, customer: acme", secretText, Delivery{Kind: "push", Customer: "acme"}},
	{"gitlab", "preset: gitlab", secretText, Delivery{Kind: "push"}},
	{"gitea", "preset: gitea", secretText, Delivery{Kind: "push"}},
	{"forgejo", "preset: forgejo", secretText, Delivery{Kind: "push"}},
	{"bitbucket", "preset: bitbucket", secretText, Delivery{Kind: "repo:push"}},
	{"netbox", "preset: netbox, customer_at: data.tenant.slug", secretText,
		Delivery{Kind: "device.updated", Customer: "acme"}},
	{"netbox-4.6", "preset: netbox, customer_at: data.tenant.slug", secretText,
		Delivery{Kind: "device.updated", Customer: "acme"}},
	{"alertmanager", "preset: alertmanager, customer_at: commonLabels.customer", secretText,
		Delivery{Kind: "firing", Customer: "acme"}},
	{"alertmanager-basic", "preset: alertmanager-basic, user: alerts", secretText,
		Delivery{Kind: "firing"}},
	{"standard-webhooks", "preset: standard-webhooks",
		"whsec_MDExMjIzMzQ0NTU2Njc3ODg5OWFhYmJjY2RkZWVmZjA=", Delivery{Kind: "contact.updated"}},
	{"hmac", "preset: hmac, kind_at: what", secretText, Delivery{Kind: "bundle"}},
	{"hmac-base64", `preset: hmac, header: X-Line-Signature, prefix: "v2:", hash: sha512, ` +
		"encoding: base64, kind: X-Kind", secretText, Delivery{Kind: "bundle"}},
	{"token", "preset: token", secretText, Delivery{}},
	{"basic", "preset: basic, user: kafka", secretText, Delivery{}},
}

// sourceOf reads a source out of its fields in YAML.
func sourceOf(t testing.TB, name, yaml string) Source {
	t.Helper()
	list, err := Parse(fleet.Source{Name: "events.yaml", Data: []byte("sources:\n  - {name: " + name +
		", secret_file: /secret, " + yaml + "}\n")})
	if err != nil {
		t.Fatal(err)
	}
	s, ok := list.Find(name)
	if !ok {
		t.Fatalf("no source %s", name)
	}
	return s
}

func secretsOf(t testing.TB, s Source, text string) []Secret {
	t.Helper()
	list, err := ParseSecrets([]byte(text), s.Form.Proof)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// requestOf reads a recorded request.
func requestOf(t testing.TB, name string) (http.Header, []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".http"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		t.Fatalf("%s: %d bytes of body, %v", name, len(body), err)
	}
	return r.Header, body
}

func messageOf(h http.Header, body []byte) Message {
	return Message{Header: h.Values, Body: body, At: sentAt.Add(time.Minute)}
}

func why(err error) Why {
	if r := (*Refusal)(nil); errors.As(err, &r) {
		return r.Why
	}
	return ""
}

// Each preset takes the request of its sender, and nothing that differs from it where it counts.
func TestEachPresetTakesTheRequestOfItsSender(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range recorded {
		s := sourceOf(t, c.name, c.yaml)
		seen[s.Preset] = true
		header, body := requestOf(t, c.name)
		secrets := secretsOf(t, s, c.secret)
		got, err := s.Accept(messageOf(header, body), secrets)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		id := got.ID
		if got.ID = ""; got != c.want || !IsID(id) {
			t.Errorf("%s: %+v with id %q, want %+v", c.name, got, id, c.want)
		}
		rotated := secretsOf(t, s, strings.Repeat("n", 32)+"\n\n"+c.secret+"\n")
		if again, err := s.Accept(messageOf(header, body), rotated); err != nil || again.ID != id {
			t.Errorf("%s, while the secret is changed: %+v, %v", c.name, again, err)
		}
		for what, change := range changes(s, header, body) {
			if _, err := s.Accept(change.m, secrets); why(err) != change.want {
				t.Errorf("%s, %s: %v (%s), want %s", c.name, what, err, why(err), change.want)
			}
		}
		other := secretsOf(t, s, strings.Repeat("n", 32))
		if _, err := s.Accept(messageOf(header, body), other); why(err) != Wrong {
			t.Errorf("%s, another secret: %v", c.name, err)
		}
		if _, err := s.Accept(messageOf(header, body), nil); why(err) != Unsecured {
			t.Errorf("%s, no secret: %v", c.name, err)
		}
	}
	for _, name := range Presets() {
		if !seen[name] && presets[name].Proof != Printed {
			t.Errorf("no request of preset %s is recorded", name)
		}
	}
}

// change is a message that must be refused.
type change struct {
	m    Message
	want Why
}

// changes returns variants of a request, none of which is one of its sender.
func changes(s Source, header http.Header, body []byte) map[string]change {
	f := s.Form
	with := func(name string, values ...string) http.Header {
		h := header.Clone()
		h[http.CanonicalHeaderKey(name)] = values
		return h
	}
	given := header.Get(f.Header)
	all := map[string]change{
		"no proof":    {messageOf(with(f.Header), body), Unproven},
		"empty proof": {messageOf(with(f.Header, ""), body), Unproven},
		"two proofs":  {messageOf(with(f.Header, given, given), body), Unproven},
		"too large": {messageOf(header, append(bytes.Clone(body), bytes.Repeat([]byte(" "),
			BodyMax)...)), TooLarge},
	}
	wrong := []byte(given)
	at := len(f.Prefix)
	if f.Proof == Basic || f.Proof == Signed {
		at = len(wrong) - 12
	}
	wrong[at] ^= 1
	all["one bit of the proof"] = change{messageOf(with(f.Header, string(wrong)), body), Wrong}
	all["the end of the proof is gone"] = change{messageOf(with(f.Header, given[:len(given)-4]), body),
		Wrong}
	if f.Proof == HMAC || f.Proof == Signed {
		other := bytes.Clone(body)
		other[bytes.IndexByte(other, ':')+1] ^= 1
		all["one bit of the body"] = change{messageOf(header, other), Wrong}
		all["a line end more"] = change{messageOf(header, append(bytes.Clone(body), '\n')), Wrong}
		all["an empty body"] = change{messageOf(header, nil), Wrong}
	} else { // such a proof does not cover the body
		all["not JSON"] = change{messageOf(header, []byte("payload=%7B%7D")), NotJSON}
		all["an empty body"] = change{messageOf(header, nil), NotJSON}
	}
	if f.Proof == Signed {
		late, early := messageOf(header, body), messageOf(header, body)
		late.At, early.At = sentAt.Add(f.Tolerance+time.Second), sentAt.Add(-f.Tolerance-time.Second)
		all["late"], all["of the future"] = change{late, Late}, change{early, Late}
		all["another time"] = change{messageOf(with(f.Time, "1795863635"), body), Wrong}
		all["another id"] = change{messageOf(with(f.ID, "msg_other"), body), Wrong}
		all["no id"] = change{messageOf(with(f.ID), body), Unproven}
		all["no time"] = change{messageOf(with(f.Time), body), Unproven}
	}
	return all
}

// A signed message that is not JSON is no event, and its sender is told why.
func TestASignedMessageThatIsNotJSONIsRefused(t *testing.T) {
	t.Parallel()
	s := sourceOf(t, "rules", "preset: github")
	// Of the documentation of GitHub; openssl says the same.
	const mac = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	h := http.Header{"X-Hub-Signature-256": {mac}}
	_, err := s.Accept(messageOf(h, []byte("Hello, World!")),
		secretsOf(t, s, "It's a Secret to Everybody"))
	if why(err) != NotJSON || !strings.Contains(err.Error(), "application/json") {
		t.Errorf("%v (%s), want %s", err, why(err), NotJSON)
	}
}

// A captured message cannot be made another event by headers that its proof does not cover.
func TestARepeatedDeliveryHasTheIDOfTheFirst(t *testing.T) {
	t.Parallel()
	for _, c := range recorded {
		s := sourceOf(t, c.name, c.yaml)
		header, body := requestOf(t, c.name)
		secrets := secretsOf(t, s, c.secret)
		first, err := s.Accept(messageOf(header, body), secrets)
		if err != nil {
			t.Fatal(err)
		}
		forged := header.Clone()
		for name := range maps.Clone(forged) {
			if strings.HasSuffix(name, "-Delivery") || strings.HasSuffix(name, "-Request-Uuid") {
				forged.Set(name, "another-one")
			}
		}
		again, err := s.Accept(messageOf(forged, body), secrets)
		if err != nil || again.ID != first.ID {
			t.Errorf("%s: %+v, %v, want the id %s", c.name, again, err, first.ID)
		}
		elsewhere := sourceOf(t, "other", c.yaml)
		if d, err := elsewhere.Accept(messageOf(header, body), secrets); err != nil || d.ID == first.ID {
			t.Errorf("%s at another source: %+v, %v", c.name, d, err)
		}
	}
	s := sourceOf(t, "gitlab", "preset: gitlab")
	header, body := requestOf(t, "gitlab")
	first, _ := s.Read(messageOf(header, body))
	header.Set("Idempotency-Key", "another-one")
	if next, err := s.Read(messageOf(header, body)); err != nil || next.ID == first.ID {
		t.Errorf("a delivery of GitLab with another id: %+v, %v", next, err)
	}
}

func TestAnEventNamesItsCustomerAndItsKind(t *testing.T) {
	t.Parallel()
	s := sourceOf(t, "alerts", "preset: alertmanager, customer_at: labels.customer, kind_at: kind")
	for body, want := range map[string]Why{
		`{"labels": {"customer": "acme"}}`:                     "",
		`{"labels": {"customer": "acme"}, "kind": "up-9.x:/"}`: "",
		`{"labels": {}}`:                                  NoName,
		`{"labels": {"customer": ""}}`:                    NoName,
		`{"labels": {"customer": "a/b"}}`:                 NoName,
		`{"labels": {"customer": ["acme"]}}`:              NoName,
		`{"labels": {"customer": "acme"}, "kind": "a b"}`: NoKind,
		`{"labels": {"customer": "acme"}, "kind": {}}`:    NoKind,
		`[]`: NoName,
	} {
		d, err := s.Read(messageOf(http.Header{}, []byte(body)))
		if why(err) != want || want == "" && d.Customer != "acme" {
			t.Errorf("%s: %+v, %v (%s), want %q", body, d, err, why(err), want)
		}
	}
}

func TestASecretIsLongAndThereAreAtMostTwo(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", 32)
	for text, want := range map[string]string{
		long:                                  "",
		long + "\r\n" + long[1:] + "\n":       "",
		"":                                    "it has no secret",
		" \n\n":                               "it has no secret",
		"short":                               "line 1: the secret has 5 bytes",
		long + "\nx":                          "line 2: the secret has 1 bytes",
		long + "\n" + long + "\n" + long:      "it has 3 secrets",
		"whsec_!" + long:                      "line 1: want base64",
		"whsec_c2hvcnQ=":                      "line 1: the secret has 5 bytes",
		"whsec_" + strings.Repeat("QUFB", 10): "",
	} {
		list, err := ParseSecrets([]byte(text), Signed)
		if got := errText(err); !strings.HasPrefix(got, want) || (want == "") != (err == nil) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		if err != nil && len(text) > 20 && strings.Contains(err.Error(), long) {
			t.Errorf("the error repeats the secret: %v", err)
		}
		for _, s := range list {
			if text := strings.ToLower(formats(s)); strings.Contains(text, "ss") ||
				strings.Contains(text, "73") {
				t.Errorf("a secret is written: %s", text)
			}
		}
	}
}

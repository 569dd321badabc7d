package server_test

import (
	"encoding/base64"
	"html"
	"net/url"
	"strings"
	"testing"

	"muster/api"
	"muster/internal/sshsig"
	"muster/server"
	"muster/testkit/passkeytest"
	"muster/trust"
)

// passkeyLine returns the line of allowed_signers for a passkey of a person.
func passkeyLine(t *testing.T, who string, p passkeytest.Passkey) string {
	t.Helper()
	line, err := trust.PasskeyLine(who, p.SPKI(t), p.Site)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// proofOf returns what a browser sends for an order.
func proofOf(t *testing.T, p passkeytest.Passkey, order []byte, flags byte) *api.PasskeyProof {
	t.Helper()
	client := passkeytest.Client(sshsig.Challenge(trust.NamespaceOrder, order), "")
	data, signature := p.Sign(t, client, flags)
	return &api.PasskeyProof{Client: []byte(client), Authenticator: data, Signature: signature}
}

// A passkey signs one order, for its owner, and only if it has checked who that is.
func TestAPasskeySignsTheOrderOfATask(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	mine, lost := passkeytest.New(t, "muster.example"), passkeytest.New(t, "muster.example")
	rules := trusting(t, "rules: [{people: 1, mode: require}]", passkeyLine(t, "user:approver-acme", mine))
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
	}}), map[string]string{}}
	other, d := w.hold("fw-a1"), w.hold("fw-a[1,2]")
	const there = passkeytest.Touched | passkeytest.Verified
	both := api.EndorseRequest{Signature: "x", Passkey: proofOf(t, mine, d.Order, there)}
	for _, x := range []struct {
		name, user string
		ask        api.EndorseRequest
		status     int
		words      string
	}{
		{"another order", "approver-acme", api.EndorseRequest{Passkey: proofOf(t, mine, other.Order, there)}, 422,
			"asked to sign something else"},
		{"a key that nobody lists", "approver-acme", api.EndorseRequest{Passkey: proofOf(t, lost, d.Order, there)}, 422,
			"does not fit the key"},
		{"somebody else", "approver", api.EndorseRequest{Passkey: proofOf(t, mine, d.Order, there)}, 422,
			"have no passkey of"},
		{"without a finger", "approver-acme", api.EndorseRequest{Passkey: proofOf(t, mine, d.Order,
			passkeytest.Touched)}, 422, "for a PIN or a finger"},
		{"no right", "viewer-acme", api.EndorseRequest{Passkey: proofOf(t, mine, d.Order, there)}, 403, "may not approve"},
		{"two signatures", "approver-acme", both, 422, "want one of them"},
		{"an empty proof", "approver-acme", api.EndorseRequest{Passkey: &api.PasskeyProof{Client: []byte("{}"),
			Authenticator: []byte("{}"), Signature: []byte("{}")}}, 422, "2 bytes: want 37"},
		{"nothing", "approver-acme", api.EndorseRequest{}, 422, "it does not count"},
		{"the owner", "approver-acme", api.EndorseRequest{Passkey: proofOf(t, mine, d.Order, there)}, 200,
			`"committed":true`},
	} {
		x.ask.Hash = d.Hash
		res, text := w.raw("POST", "/v1/approvals/"+string(d.Task), x.ask, w.bearer(x.user))
		if res.StatusCode != x.status || !strings.Contains(string(text), x.words) {
			t.Errorf("%s: %d, want %d and %q: %s", x.name, res.StatusCode, x.status, x.words, text)
		}
	}
}

// The page of passkeys shows the line for a key that a browser has made, for the person who asks, and
// none for a key in a link, which somebody else may have made.
func TestThePageOfPasskeysShowsTheLine(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(twoCustomers())})
	mine := passkeytest.New(t, "muster.example")
	of := func(spki []byte, site string, want int) string {
		t.Helper()
		form := url.Values{"key": {base64.StdEncoding.EncodeToString(spki)}, "site": {site}}
		res, text := w.post("/passkeys", form, nil)
		if res.StatusCode != want {
			t.Errorf("%s: %s", res.Status, text)
		}
		return text
	}
	var who api.Whoami
	w.call("GET", "/v1/whoami", nil, &who)
	line := passkeyLine(t, who.Principal, mine)
	if page := of(mine.SPKI(t), "muster.example", 200); !strings.Contains(page, line) {
		t.Errorf("the page lacks the line %s: %s", line, page)
	}
	for _, site := range []string{"", "<b>\n"} {
		if page := of(mine.SPKI(t), site, 422); !strings.Contains(page, "the name of the site") ||
			strings.Contains(page, who.Principal+" namespaces") {
			t.Errorf("%q: %s", site, page)
		}
	}
	if page := of([]byte("no key"), "muster.example", 422); !strings.Contains(page, "is damaged") {
		t.Errorf("no key: %s", page)
	}
	q := url.Values{"key": {base64.StdEncoding.EncodeToString(mine.SPKI(t))}, "site": {"muster.example"}}
	if _, text := w.raw("GET", "/passkeys?"+q.Encode(), nil, nil); strings.Contains(string(text), "sk-ecdsa") {
		t.Errorf("a link shows a line: %s", text)
	}
}

// The page on which one signs shows all that the order has, also what somebody would rather hide.
func TestThePageToSignHidesNothing(t *testing.T) {
	t.Parallel()
	policy := policyOf(t, rolesPolicy())
	mine := passkeytest.New(t, "muster.example")
	rules := trusting(t, "rules: [{people: 2, mode: require}]", passkeyLine(t, "user:approver-acme", mine))
	w := crowd{start(t, setup{inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
	}}), map[string]string{}}
	ask := run("fw-a[1,2]")
	ask.Args["cmd"] = "uptime # INC-7\nreboot \u202etxet"
	var made api.Submitted
	w.call("POST", "/v1/tasks?hold=true", ask, &made)
	var d api.HeldDetail
	w.call("GET", "/v1/approvals/"+string(made.Task), nil, &d)
	path := "/approvals/" + string(made.Task) + "/order/sign"
	_, raw := w.raw("GET", path, nil, w.bearer("approver-acme"))
	page := html.UnescapeString(string(raw))
	for _, words := range []string{`uptime # INC-7\nreboot \u202etxet`, "Its steps: ", "No earlier run", d.Hash,
		"fw-a[1-2]"} {
		if !strings.Contains(page, words) {
			t.Errorf("the page lacks %q: %s", words, page)
		}
	}
	form := hidden(string(raw))
	if res, text := w.post(path, form, w.bearer("approver-acme")); res.StatusCode != 422 ||
		!strings.Contains(text, "a passkey needs JavaScript") {
		t.Errorf("without a signature: %s: %s", res.Status, text)
	}
	proof := proofOf(t, mine, d.Order, passkeytest.Touched|passkeytest.Verified)
	for name, value := range map[string][]byte{"client": proof.Client, "authenticator": proof.Authenticator,
		"signature": proof.Signature} {
		form.Set(name, base64.StdEncoding.EncodeToString(value))
	}
	res, text := w.post(path, form, w.bearer("approver-acme"))
	if at := res.Header.Get("Location"); at != "/approvals/"+string(made.Task)+"?did=sign" {
		t.Errorf("one of two has signed: %s, %q: %s", res.Status, at, text)
	}
	var now api.HeldDetail
	if w.call("GET", "/v1/approvals/"+string(made.Task), nil, &now); len(now.Signed) != 1 || *now.Missing != 1 {
		t.Errorf("after the signature: %+v", now)
	}
	back := strings.Replace(path, "/sign", "/withdraw", 1)
	_, raw = w.raw("GET", back, nil, w.bearer("approver-acme"))
	res, text = w.post(back, hidden(string(raw)), w.bearer("approver-acme"))
	w.call("GET", "/v1/approvals/"+string(made.Task), nil, &now)
	if at := res.Header.Get("Location"); at != "/approvals/"+string(made.Task)+"?did=withdraw" || len(now.Signed) > 0 {
		t.Errorf("taken back: %s, %q, %q: %s", res.Status, at, now.Signed, text)
	}
}

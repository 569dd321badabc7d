package server_test

import (
	"encoding/base64"
	"net/http"
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
	text, err := sshsig.PasskeyText(p.SPKI(t), p.Site)
	if err != nil {
		t.Fatal(err)
	}
	return who + ` namespaces="` + trust.NamespaceOrder + `" ` + text
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

// The page of passkeys shows the line for a key that a browser has made, and says what is wrong with
// an address that somebody else has made.
func TestThePageOfPasskeysShowsTheLine(t *testing.T) {
	t.Parallel()
	w := start(t, setup{inventory: fixed(twoCustomers())})
	mine := passkeytest.New(t, "muster.example")
	of := func(spki []byte, site string) string {
		q := url.Values{"key": {base64.StdEncoding.EncodeToString(spki)}, "site": {site}}
		res, text := w.raw("GET", "/passkeys?"+q.Encode(), nil, nil)
		if res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", res.Status, text)
		}
		return string(text)
	}
	line := passkeyLine(t, "", mine)
	if page := of(mine.SPKI(t), "muster.example"); !strings.Contains(page, strings.Fields(line)[2]) ||
		!strings.Contains(page, "namespaces=&#34;muster-order&#34; sk-ecdsa-sha2-nistp256@openssh.com ") {
		t.Errorf("the page has no line: %s", page)
	}
	for site, words := range map[string]string{"": "the name of the site", "<b>\n": "the name of the site"} {
		if page := of(mine.SPKI(t), site); !strings.Contains(page, words) || strings.Contains(page, "<b>") {
			t.Errorf("%q: %s", site, page)
		}
	}
	if page := of([]byte("no key"), "muster.example"); !strings.Contains(page, "is damaged") {
		t.Errorf("no key: %s", page)
	}
}

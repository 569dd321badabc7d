package browser

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
)

const passkeyConfig = `redis: {url: "unix://DIR/redis.sock"}
server:
  key: DIR/server.key
  listen: ["unix:DIR/api.sock", "ADDR"]
  access: DIR/access.yaml
node: {name: n1, dir: DIR/node}
master: {children: 2}
audit: {dir: DIR/audit}
trust: {dir: DIR/trust}
inventory: [DIR/hosts.yaml]
runbooks: [DIR/rest.yaml]
`

const passkeyPolicy = `rules:
  - {runbooks: [rest], level: person, mode: require}
  - {level: server, mode: require}
`

const passkeyBook = `name: rest
description: Rests, and asks no host.
repeatable: true
timeout: 1m
steps:
  - {name: rest, wait: {for: 1s}}
`

// authenticator gives a tab an authenticator of Chromium's, whose owner says yes to everything.
func (x *tab) authenticator() (id webauthn.AuthenticatorID) {
	x.t.Helper()
	x.run(do(webauthn.Enable, webauthn.EnableParams{}), chromedp.Func(
		func(ctx context.Context, t *chromedp.Target) error {
			made, err := cdp.Call(ctx, t, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{
				Options: &webauthn.VirtualAuthenticatorOptions{Protocol: webauthn.AuthenticatorProtocolCtap2,
					Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true,
					HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true}})
			id = made.AuthenticatorID
			return err
		}))
	return id
}

// TestAPasskeySignsAnOrder makes a passkey in a browser, has its line added to the allowed signers as
// docs/TRUST.md says, and signs a task with it that nodes do not run without a person.
func TestAPasskeySignsAnOrder(t *testing.T) {
	p := newPlain(t, map[string]string{"muster": passkeyConfig, "access": plainAccess, "rest": passkeyBook,
		"hosts": "hosts:\n  - {name: h1, address: 127.0.0.1, " + hostKey + "}\n"})
	signers := filepath.Join(p.dir, "trust", "allowed_signers")
	if err := os.WriteFile(filepath.Join(p.dir, "trust", "policy.yaml"), []byte(passkeyPolicy), 0o644); err != nil {
		t.Fatal(err)
	}
	p.serve(t, "master")
	lookAt(t, p.house)
	// A passkey is for a name: browsers know none for an address of a network.
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p.url = "http://localhost:" + port

	x := open(t, newBrowser(t), phone)
	x.login()
	id := x.authenticator()
	x.visit("/passkeys")
	x.axe()
	x.run(chromedp.Click("button.main", chromedp.NodeVisible), chromedp.WaitReady("pre.log"))
	line := x.js(`document.querySelector("pre.log").innerText`)
	x.axe()
	all, err := os.ReadFile(signers)
	if err != nil {
		t.Fatal(err)
	}
	p.muster(t, "run", "rest", "--on", "h1", "--hold")
	task := p.lastTask(t)

	// Before its line is there, the passkey is of nobody.
	page := "/approvals/" + task + "/order/sign"
	const button, refused = "form button[type=submit].main", "[role=alert]:not([hidden])"
	x.visit("/approvals/" + task)
	x.run(chromedp.Click(`a[href="`+page+`"]`, chromedp.NodeVisible), chromedp.WaitReady("#passkey"))
	x.axe()
	x.press(button, refused)
	if words := x.text(); !strings.Contains(words, "have no passkey of") {
		t.Errorf("a passkey without its line: %s", words)
	}
	x.complaints() // the browser itself complains of the status

	if err := os.WriteFile(signers, append(all, line+"\n"...), 0o644); err != nil {
		t.Fatal(err)
	}
	p.muster(t, "trust", "check", filepath.Join(p.dir, "trust"), "--runbooks", filepath.Join(p.dir, "rest.yaml"))

	// A person who says no is told that nothing was done, and may try again.
	x.visit(page)
	x.js(`navigator.credentials.get = async () => { throw new Error("the person said no"); }`)
	x.run(chromedp.Click(button, chromedp.NodeVisible))
	x.until(`document.querySelector("` + refused + `")?.innerText === "Nothing was done: the person said no"`)
	x.until(`!document.querySelector("` + button + `").disabled`)
	x.axe()
	x.quiet()

	// An authenticator that did not ask for a finger proves nothing.
	bad := true
	x.visit(page)
	x.run(do(webauthn.SetResponseOverrideBits, webauthn.SetResponseOverrideBitsParams{AuthenticatorID: id, IsBadUV: &bad}))
	x.press(button, refused)
	if words := x.text(); !strings.Contains(words, "did not ask its user for a PIN or a finger") {
		t.Errorf("a passkey without a finger: %s", words)
	}
	x.complaints()
	bad = false
	x.run(do(webauthn.SetResponseOverrideBits, webauthn.SetResponseOverrideBitsParams{AuthenticatorID: id, IsBadUV: &bad}))

	x.visit(page)
	x.press(button, "#state")
	if words := x.text(); !strings.Contains(words, "The order “sign” was carried out") {
		t.Errorf("it was signed, and the page says: %s", words)
	}
	x.untilIn(time.Minute, `document.body.innerText.includes("is ended")`)
	if did := p.ended(t, task, 1); did["succeeded"] != 1 {
		t.Errorf("the task: %v", did)
	}
	x.quiet()
}

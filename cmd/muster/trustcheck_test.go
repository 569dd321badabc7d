package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"muster/cli"
)

// trust check finds what a node would refuse, and what it would take and nobody can have meant.
func TestTrustCheckFindsWhatIsWrongWithAFolder(t *testing.T) {
	t.Parallel()
	h := newCellar(t, "hosts:\n  - {name: fw1, customer: acme, address: 192.0.2.1, user: x, host_key: \"ssh-ed25519 "+
		"AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\"}\n")
	check := func(want int) (string, string) {
		t.Helper()
		code, out, words := h.plainly("", "trust", "check", "--config", h.file("muster.yaml"))
		if code != want {
			t.Errorf("exit %d, want %d: %s%s", code, want, out, words)
		}
		return out, words
	}
	if out, _ := check(cli.ExitOK); !strings.Contains(out, "1 rule, 1 signer, nothing wrong") {
		t.Errorf("of a folder that init made it says %s", out)
	}
	was := map[string]string{}
	for _, name := range []string{"trust/policy.yaml", "trust/allowed_signers"} {
		text, err := os.ReadFile(h.file(name))
		if err != nil {
			t.Fatal(err)
		}
		was[name] = string(text)
	}
	h.write("trust/policy.yaml", "rules:\n  - {runbooks: [firmwre], people: 2, mode: require}\n"+
		"  - {hosts: customer=acmee, level: server, mode: warn}\n  - {level: server, mode: require}\n")
	_, words := check(cli.ExitNotAll)
	for _, want := range []string{h.file("trust/policy.yaml") + ":2: runbooks: no runbook", "did you mean firmware?",
		h.file("trust/policy.yaml") + `:3: hosts "customer=acmee"`, ":2: people: 2 can never hold"} {
		if !strings.Contains(words, want) {
			t.Errorf("it lacks %q: %s", want, words)
		}
	}
	// A broken file keeps nothing from being said of the others.
	h.write("trust/allowed_signers", "# a comment\nuser:x no key\n")
	if err := os.Chmod(h.file("trust/node.key"), 0o644); err != nil {
		t.Fatal(err)
	}
	var got trustFindings
	code := h.query(&got, "trust", "check", h.file("trust"), "--config", h.file("muster.yaml"))
	if code != cli.ExitNotAll {
		t.Errorf("exit %d", code)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`trust/allowed_signers","line":2,`, `trust/policy.yaml","line":2,`, "node.key"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it lacks %s: %s", want, text)
		}
	}
	// A server without a key beside nodes that want its word.
	for _, name := range []string{"trust/policy.yaml", "trust/allowed_signers"} {
		h.write(name, was[name])
	}
	if err := os.Chmod(h.file("trust/node.key"), 0o400); err != nil {
		t.Fatal(err)
	}
	h.configure(map[string]any{"server": map[string]any{"key": ""}})
	if _, words := check(cli.ExitNotAll); !strings.Contains(words, "no key of servers: nodes with this policy refuse") {
		t.Errorf("of a server without a key it says %s", words)
	}
	code, _, words = h.plainly("", "trust", "check", h.dir+"/nowhere", "--config", h.file("muster.yaml"))
	if code != cli.ExitNotAll || !strings.Contains(words, "policy.yaml") {
		t.Errorf("of no folder: exit %d, %s", code, words)
	}
}

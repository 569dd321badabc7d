package trust_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/fleet"
	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/trust"
)

const (
	lookedKey  = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
	lookedKey2 = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB8BAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f"
)

func looked(t *testing.T, policy, signers string, hosts bool) []string {
	t.Helper()
	p, err := trust.ParsePolicy(fleet.Source{Name: "policy.yaml", Data: []byte(policy)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := sshsig.ParseAllowed([]byte(signers))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := serverkey.Parse([]byte(serverkey.File("house", [serverkey.Size]byte{1})))
	if err != nil {
		t.Fatal(err)
	}
	k := trust.Known{Policy: "policy.yaml", Signers: "allowed_signers", Servers: []string{lookedKey},
		Runbooks: []string{"exec", "firewall", "firmware"}, Now: time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)}
	if hosts {
		var list []fleet.Host
		for i, customer := range []string{"acme", "acme", "umbrella"} {
			list = append(list, fleet.Host{Name: fmt.Sprint("fw", i+1), Customer: customer, Zone: "default",
				Address: "192.0.2.1", Port: 22, User: "x", Fence: fleet.FenceNone, HostKeys: []string{lookedKey}})
		}
		if k.Hosts, err = fleet.New(list); err != nil {
			t.Fatal(err)
		}
	}
	var out []string
	for _, m := range (&trust.Rules{Policy: p, Signers: a, Keys: keys}).Looks(k) {
		out = append(out, m.Error())
	}
	return out
}

// Each thing that cannot be meant so is found, with its place, and nothing in a folder that is well.
func TestWhatCannotBeMeantSoIsFound(t *testing.T) {
	t.Parallel()
	const server = "server:house " + lookedKey + "\n"
	const ann = "user:ann " + lookedKey2 + "\n"
	const last = "  - {level: server, mode: require}\n"
	for _, c := range []struct {
		name, policy, signers string
		want                  []string
	}{
		{"all is well", "  - {runbooks: [firmware], hosts: customer=acme, level: person, mode: require}\n" + last,
			server + ann, nil},
		{"a misspelt runbook", "  - {runbooks: [firmwre], people: 1, mode: require}\n" + last, server + ann,
			[]string{`policy.yaml:2: runbooks: no runbook that is known here fits "firmwre": did you mean firmware?`}},
		{"a label that no host has", "  - {hosts: customer=acmee, level: server, mode: warn}\n" + last, server, []string{
			`policy.yaml:2: hosts "customer=acmee" picks no`}},
		{"a host that is not there", "  - {hosts: '{customer=acme}!fw9', level: server, mode: warn}\n" + last,
			server, []string{`policy.yaml:2: hosts "{customer=acme}!fw9": no host has the name fw9`}},
		{"a rule that never counts", "  - {runbooks: ['f*'], level: server, mode: warn}\n" +
			"  - {runbooks: [firewall], hosts: customer=acme, level: server, mode: require}\n" + last, server, []string{
			"policy.yaml:3: this rule never counts"}},
		{"two rules that take all of a third", "  - {hosts: customer=acme, level: server, mode: warn}\n" +
			"  - {hosts: customer=umbrella, level: server, mode: warn}\n" +
			"  - {runbooks: [exec], level: server, mode: require}\n", server, []string{
			"policy.yaml:4: this rule never counts"}},
		{"a key that has ended", last, server + `user:bob valid-before="20200101Z" ` + lookedKey2 + "\n", []string{
			"allowed_signers:2: the key of user:bob signs no orders: "}},
		{"a key that ends soon", last, server + `user:bob valid-before="20261201Z" ` + lookedKey2 + "\n", []string{
			"allowed_signers:2: the key of user:bob ends soon: "}},
		{"a key for something else", last, server + `user:bob namespaces="git" ` + lookedKey2 + "\n", []string{
			"allowed_signers:2: the key of user:bob signs no orders: "}},
		{"too few people", "  - {runbooks: [exec], people: 2, mode: require}\n" + last, server + ann, []string{
			"policy.yaml:2: people: 2 can never hold: 1 of the people"}},
		{"no server", last, ann, []string{"allowed_signers:1: no key of server:house signs orders",
			"allowed_signers:1: the key of the server of this machine is in no line",
			"policy.yaml:2: server can never hold"}},
		{"another server", last, "server:house " + lookedKey2 + "\n", []string{
			"allowed_signers:1: the key of the server of this machine is in no line"}},
	} {
		got := looked(t, "rules:\n"+c.policy, c.signers, true)
		ok := len(got) == len(c.want)
		for _, want := range c.want {
			ok = ok && slices.ContainsFunc(got, func(g string) bool { return strings.HasPrefix(g, want) })
		}
		if !ok {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
	if got := looked(t, "rules:\n  - {hosts: customer=x, level: server, mode: warn}\n"+
		"  - {hosts: customer=y, level: server, mode: warn}\n"+last, server, false); len(got) > 0 {
		t.Errorf("without an inventory nobody knows which hosts there are, but: %q", got)
	}
}

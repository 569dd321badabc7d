package access_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"muster/access"
	"muster/fleet"
)

// large is a fleet of 20,000 hosts of 1,000 customers.
var large = sync.OnceValues(func() (*fleet.Inventory, error) {
	hosts := make([]fleet.Host, 20_000)
	for i := range hosts {
		hosts[i] = fleet.Host{Name: fmt.Sprintf("fw%05d", i), Address: fmt.Sprintf("192.0.%d.%d", i/250, i%250), Port: 22,
			User: "root", Customer: fmt.Sprintf("c%d", i%1000), Zone: "default", Fence: "auto",
			Labels: map[string]string{"role": "fw"}}
	}
	return fleet.New(hosts)
})

// thousand has 1,000 grants of one person, none of which fits until the last.
func thousand(b *testing.B) (*access.Rights, *fleet.Inventory) {
	b.Helper()
	var text strings.Builder
	text.WriteString("who:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - principal: os:alice\n    grants: [{verbs: [see, run], runbooks: ['firewall-%d', 'fire*'], "+
			"hosts: customer=c%d}]\n", i, i)
	}
	inv, err := large()
	if err != nil {
		b.Fatal(err)
	}
	r := policy(b, text.String()).Over(inv)
	if !r.Allows(alice, firewall, "fw00999") || r.Allows(alice, firewall, "fw99999") {
		b.Fatal("the first or the last grant does not count")
	}
	return r, inv
}

var (
	alice    = access.Who{Principal: "os:alice"}
	firewall = access.Act{Verb: access.Run, Runbook: "firewall"}
)

// BenchmarkAllows1000Grants looks at all grants of somebody: of the first question 999 have other
// hosts, of the second all have the host and 1,000 another runbook. It must take less than 20 µs.
func BenchmarkAllows1000Grants(b *testing.B) {
	b.Run("hosts", func(b *testing.B) {
		r, _ := thousand(b)
		for b.Loop() {
			if !r.Allows(alice, firewall, "fw19999") {
				b.Fatal("refused")
			}
		}
	})
	b.Run("runbooks", func(b *testing.B) {
		var text strings.Builder
		text.WriteString("who:\n")
		for i := range 1000 {
			fmt.Fprintf(&text, "  - {principal: 'os:alice', roles: [operator], hosts: role=fw, runbooks: ['f*-%d']}\n", i)
		}
		inv, err := large()
		if err != nil {
			b.Fatal(err)
		}
		r := policy(b, text.String()).Over(inv)
		for b.Loop() {
			if r.Allows(alice, firewall, "fw19999") {
				b.Fatal("allowed")
			}
		}
	})
}

// BenchmarkFilter20000 filters a list of 20,000 hosts by 1,000 grants. It must take less than 10 ms.
func BenchmarkFilter20000(b *testing.B) {
	r, inv := thousand(b)
	hosts := inv.Hosts()
	for b.Loop() {
		may, n := r.Hosts(alice, firewall), 0
		for i := range hosts {
			if may.Has(hosts[i].Name) {
				n++
			}
		}
		if n != len(hosts) {
			b.Fatal(n)
		}
	}
}

// BenchmarkOver20000 is a new inventory: the first question finds the hosts of 1,000 selectors.
func BenchmarkOver20000(b *testing.B) {
	r, inv := thousand(b)
	for b.Loop() {
		if n := r.Policy().Over(inv).Hosts(alice, firewall).Len(); n != 20_000 {
			b.Fatal(n)
		}
	}
}

func BenchmarkParse1000Grants(b *testing.B) {
	var text strings.Builder
	text.WriteString("who:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  - {principal: 'user:u%d', roles: [operator], hosts: customer=c%d}\n", i, i)
	}
	for b.Loop() {
		policy(b, text.String())
	}
}

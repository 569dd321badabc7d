package fleet_test

import (
	"fmt"

	"muster/fleet"
)

func Example() {
	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: []byte(`
defaults: {known_hosts: /etc/muster/known_hosts}
hosts:
  - {name: fw001, address: 192.0.2.1, customer: acme, labels: {role: fw}}
  - {name: fw002, address: 192.0.2.2, customer: acme, labels: {role: fw}}
  - {name: vpn1, address: 192.0.2.3, customer: acme, labels: {role: vpn, drained: true}}
`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{
		"fw[001-002]", "customer=acme,!drained", "{customer=acme}!fw001", "all", "fw003", "role=fv",
	} {
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		hosts, err := inv.Select(sel)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(len(hosts), fleet.Fold(names(hosts)))
	}
	// Output:
	// 2 fw[001-002]
	// 2 fw[001-002]
	// 2 fw002,vpn1
	// 3 fw[001-002],vpn1
	// selector "fw003": fw003 is not in the inventory; nearest: fw001, fw002
	// selector "role=fv" picks no host: no host has role=fv, nearest: role=fw
}

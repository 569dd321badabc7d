// Package fleet knows the hosts that are managed and selects some of them.
//
// It defines hosts, the inventory that lists them, and selectors, the expressions
// that pick some. It is pure: it parses bytes from its caller and never touches a
// file, a network or a clock. Package fleet/remote connects to hosts.
//
//	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: data})
//	sel, err := fleet.ParseSelector("customer=acme,role in (fw,vpn),!drained")
//	hosts, err := inv.Select(sel)
//	fleet.Fold(names) // fw[001-300],vpn1
//
// Parse reports every mistake of all files at once, each with its file and
// line. A selection without hosts is an error, and so is a name that no host
// has: nothing here ever falls back to all hosts. ImportSSHConfig creates hosts
// from the configuration of OpenSSH.
//
// Floor 0: may import the standard library, YAML and the label syntax of
// Kubernetes.
package fleet

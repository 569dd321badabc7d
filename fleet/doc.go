// Package fleet says which hosts there are and which of them are meant.
//
// It knows hosts, the inventory that lists them, and selectors, the expressions
// that pick some. It is pure: it reads bytes that it is given and never a file,
// a network or a clock. How a host is reached is the business of fleet/remote.
//
//	inv, err := fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: data})
//	sel, err := fleet.ParseSelector("customer=acme,role in (fw,vpn),!drained")
//	hosts, err := inv.Select(sel)
//	fleet.Fold(names) // fw[001-300],vpn1
//
// Parse answers with every mistake of all files at once, each with its file and
// line. A selection that is empty is an error, and so is a name that no host
// has: nothing here ever falls back to all hosts. ImportSSHConfig makes hosts of
// what OpenSSH knows of them.
//
// Floor 0: may import the standard library, YAML and the label syntax of
// Kubernetes.
package fleet

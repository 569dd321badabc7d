package sources

import (
	"fmt"

	"muster/fleet"
	"muster/fleet/remote"
)

// keysInTheOpen are the private keys that no worker would use, because others can read them:
// each once, at the first host that names it. Keys are files of nodes, so only those that are
// on this machine, too, can be looked at.
func keysInTheOpen(inv *fleet.Inventory) fleet.Mistakes {
	var list fleet.Mistakes
	seen := map[string]bool{"": true} // no key is the agent's
	look := func(h fleet.Host, key string) {
		if seen[key] {
			return
		}
		seen[key] = true
		if err := remote.KeyInTheOpen(key); err != nil {
			file, line := inv.Place(h.Name)
			list = append(list, fleet.Mistake{File: file, Line: line,
				Text: fmt.Sprintf("host %s: %v; jobs of all hosts with it fail", h.Name, err)})
		}
	}
	for _, h := range inv.Hosts() {
		look(h, h.Key)
		for _, hop := range h.Jump {
			look(h, hop.Key)
		}
	}
	return list
}

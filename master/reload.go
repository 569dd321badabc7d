package master

import (
	"strings"

	"muster/internal/wording"
)

// reload takes over another configuration, or refuses it.
func (n *node) reload(next Config) {
	next.Try, next.Exec, next.Kept = n.cfg.Try, n.cfg.Exec, nil
	if err := n.cfg.checkReload(next); err != nil {
		n.refuse(err)
		return
	}
	n.log.Info("configuration reloaded", "zones", strings.Join(next.Zones, ","),
		"children", next.Children, "slots", next.Slots)
	n.note(&n.face.notes.reload, "")
	n.cfg = next
	n.face.changed = true
	n.changeZones()
	n.drainAll() // the next children have it
}

// reloadRefused begins the note of a node that could not take over a new configuration.
const reloadRefused = "reload refused, the old configuration stays: "

// refuse tells people why the old configuration stays.
func (n *node) refuse(err error) {
	n.log.Error("configuration refused, the old one stays", "error", err)
	n.note(&n.face.notes.reload, reloadRefused+wording.ErrorLine(err))
}

// changeZones works for the zones of the configuration from now on.
func (n *node) changeZones() {
	var zones []*zone
	for _, name := range n.cfg.Zones {
		z := n.zone(name)
		if z.closed {
			z = &zone{name: name}
			n.recover(z)
		}
		zones = append(zones, z)
	}
	n.zones = zones
	n.listen()
}

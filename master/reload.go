package master

import (
	"strings"

	"muster/internal/wording"
	"muster/master/zones"
)

// reload puts another configuration in force, or refuses it.
func (n *node) reload(next Config) {
	next.Try, next.Exec, next.Pulse, next.Kept = n.cfg.Try, n.cfg.Exec, n.cfg.Pulse, nil
	if err := n.cfg.checkReload(next); err != nil {
		n.refuse(err)
		return
	}
	n.log.Info("configuration reloaded", "zones", strings.Join(next.Zones, ","),
		"children", next.Children, "slots", next.Slots)
	n.face.note(&n.face.notes.reload, "")
	n.cfg = next
	n.face.changed = true
	n.changeZones()
	n.slots.drain() // the next children get the new configuration
}

// reloadRefused begins the note of a node that has refused a new configuration.
const reloadRefused = "reload refused, the old configuration stays: "

// refuse shows people why the old configuration stays in force.
func (n *node) refuse(err error) {
	n.log.Error("configuration refused, the old one stays", "error", err)
	n.face.note(&n.face.notes.reload, reloadRefused+wording.ErrorLine(err))
}

// changeZones makes the node work for the zones of its new configuration.
func (n *node) changeZones() {
	var next zones.Zones
	for _, name := range n.children.allowed.zones(n.cfg) {
		z := n.zones.Named(name)
		if z.Closed {
			z = &zones.Zone{Name: name}
			n.recover(z)
		}
		next = append(next, z)
	}
	n.zones = next
	n.listen()
}

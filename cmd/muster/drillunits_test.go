package main

import (
	"strings"
)

// A unit is what systemctl starts and stops on a machine; here it is a process of the test.
type unit struct{ start, stop func() }

// systemctl does what the command of a page does on a machine with systemd, and reports whether the
// text is such a command.
func (d *drill) systemctl(text string) bool {
	d.t.Helper()
	words := strings.Fields(text)
	if len(words) != 3 || words[0] != "systemctl" {
		return false
	}
	u := d.units[words[2]]
	if u == nil {
		d.t.Fatalf("%s: %s: this house has no such unit", d.page, text)
	}
	switch words[1] {
	case "stop":
		u.stop()
	case "start":
		u.start()
	case "restart":
		u.stop()
		u.start()
	default:
		d.t.Fatalf("%s: %s: want start, stop or restart", d.page, text)
	}
	d.t.Logf("$ %s", text)
	return true
}

// operated is drillOf for a house whose server is the unit muster-server.
func operated(h *house, page string, words ...string) *drill {
	h.t.Helper()
	d := drillOf(h, page, append(words, "/var/lib/muster-server", h.file("node"))...)
	d.units = map[string]*unit{"muster-server": {
		stop: func() { end(h.server) },
		start: func() {
			h.server = h.start("server", "--config", h.file("muster.yaml"))
			h.server.await("server listens")
		}}}
	return d
}

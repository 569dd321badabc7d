package hosts

import (
	"strings"
	"testing"

	"muster/api"
	"muster/fleet"
)

func TestEachColumnOfHostsHasItsCell(t *testing.T) {
	l := api.HostList{Hosts: []fleet.Host{{Name: "fw1", Address: "192.0.2.7", Port: 22, User: "ops", Zone: "dmz",
		Customer: "acme", Group: "pair1", Labels: map[string]string{"role": "fw"}}}}
	said := map[string]fleet.Facts{"fw1": {"os": "Debian"}}
	for name, want := range map[string]string{"host": "fw1", "address": "192.0.2.7:22", "user": "ops", "zone": "dmz",
		"customer": "acme", "group": "pair1", "drained": "-", "labels": "role=fw", "role": "fw", "fact.os": "Debian"} {
		cell, err := hostColumn(name, l, said)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := cell(l.Hosts[0], l); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestAllWrongColumnsAreReportedAtOnce(t *testing.T) {
	_, err := hostGrid(api.HostList{}, []string{"host", "colour", "fact.colour"}, nil)
	if err == nil || !strings.Contains(err.Error(), `"colour" is no column`) ||
		!strings.Contains(err.Error(), `there is no fact "colour"`) ||
		!strings.Contains(err.Error(), strings.Join(hostColumnNames(), ", ")) {
		t.Error(err)
	}
}

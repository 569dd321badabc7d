package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"muster/fleet"
)

// readings tells how long it takes to read an inventory and to select from it, in one
// process and without Redis.
func readings(_ context.Context, b *bench) ([]row, error) {
	_, key, err := b.newKey("inventory_host")
	if err != nil {
		return nil, err
	}
	hosts := b.size(askedHosts)
	return b.readings(hosts, inventoryText(hosts, 1, key))
}

// What 20,000 hosts may take: to be read, and the dearest selector.
const (
	askedHosts   = 20_000
	readAtMost   = 1000 // ms
	selectAtMost = 50   // ms
)

func (b *bench) readings(hosts int, text []byte) ([]row, error) {
	var read []float64
	var inv *fleet.Inventory
	for range b.rounds {
		began := time.Now()
		var err error
		if inv, err = fleet.Parse(fleet.Source{Name: "fleet.yaml", Data: text}); err != nil {
			return nil, err
		}
		read = append(read, millis(time.Since(began)))
	}
	rows := []row{newRow(fmt.Sprintf("%d hosts are read from YAML", hosts), "ms", read).
		atMost(readAtMost)}
	for _, s := range selectors(hosts) {
		took, err := b.selects(inv, s.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.text, err)
		}
		rows = append(rows, newRow(fmt.Sprintf("%d hosts, %s", hosts, s.name), "ms", took).
			atMost(selectAtMost))
	}
	return rows, nil
}

// asked is a selector of which the time is taken.
type asked struct{ name, text string }

// selectors are those of an inventory of so many hosts.
func selectors(hosts int) []asked {
	return []asked{
		{"labels", "customer=acme,role in (fw,vpn),!drained"},
		{"all but a range", fmt.Sprintf("fw*!fw[000000-%06d]", hosts/2)},
		{"a pattern of names", "fw*7"},
	}
}

// selects takes the times from the text of a selector to its hosts.
func (b *bench) selects(inv *fleet.Inventory, text string) (took []float64, err error) {
	for range b.rounds {
		began := time.Now()
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			return nil, err
		}
		hosts, err := inv.Select(sel)
		if err != nil {
			return nil, err
		}
		if len(hosts) == 0 {
			return nil, fmt.Errorf("it means no host")
		}
		took = append(took, millis(time.Since(began)))
	}
	return took, nil
}

// inventoryText is the YAML of so many hosts, as pairs of two customers, in so many zones.
func inventoryText(hosts, zones int, key string) []byte {
	var text bytes.Buffer
	text.WriteString("defaults: {user: root, key: /etc/muster/id_ed25519}\nhosts:\n")
	for i := range hosts {
		fmt.Fprintf(&text, "  - {name: fw%06d, address: 10.%d.%d.%d, customer: %s, zone: %s, "+
			"group: pair-%d, labels: {role: fw, model: x%d}, host_key: %q}\n", i, i>>16&255, i>>8&255, i&255,
			[]string{"acme", "globex"}[i/2%2], zoneOf(i/2%zones), i/2, 100*(i%7), key)
	}
	return text.Bytes()
}

// zoneOf returns the name of a zone; the first is the default one.
func zoneOf(i int) string {
	if i == 0 {
		return zone
	}
	return fmt.Sprint("z", i)
}

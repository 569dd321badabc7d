package fleet_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

func TestLimitsOfAnInventory(t *testing.T) {
	t.Parallel()
	inv, err := fleet.Parse(source("limits.yaml", `
limits:
  site/zrh1: 5
  mirror/fw-images: {max: 20, customer: acme, zone: fra}
  zone/ber: 3
  zone/nowhere: 0
  customer/acme: 7
  mirror/any: 1
`), source("fleet.yaml", `
defaults: {known_hosts: /k}
hosts:
  - {name: a, address: a, zone: zrh, customer: acme, labels: {site: zrh1}}
  - {name: b, address: b, zone: zrh, customer: acme, labels: {site: zrh2, example.com/rack: r1}}
  - {name: c, address: c, zone: ber, group: g}
limits: {example.com/rack/r1: 2}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := []fleet.Limit{
		{Name: "customer/acme", Max: 7, Zone: "zrh"},
		{Name: "example.com/rack/r1", Max: 2, Zone: "zrh"},
		{Name: "mirror/any", Max: 1, Zone: "default"},
		{Name: "mirror/fw-images", Max: 20, Zone: "fra", Customer: "acme"},
		{Name: "site/zrh1", Max: 5, Zone: "zrh"},
		{Name: "zone/ber", Max: 3, Zone: "ber"},
		{Name: "zone/nowhere", Max: 0, Zone: "nowhere"},
	}
	if diff := cmp.Diff(want, inv.Limits()); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
	needs := map[string][]string{"a": {"customer/acme", "site/zrh1"},
		"b": {"customer/acme", "example.com/rack/r1"}, "c": {"zone/ber"}}
	for name, want := range needs {
		h, _ := inv.Host(name)
		if diff := cmp.Diff(want, fleet.Needs(h, inv.Limits())); diff != "" {
			t.Errorf("needs of %s (-want +got):\n%s", name, diff)
		}
	}
	again, err := fleet.New(inv.Hosts(), inv.Limits()...)
	if err != nil || again.Version() != inv.Version() {
		t.Errorf("made again: %v", err)
	}
	without, err := fleet.New(inv.Hosts())
	if err != nil || without.Version() == inv.Version() {
		t.Errorf("the version does not tell limits apart: %v", err)
	}
}

func TestAGroupOrANearMissNeedsNoLimit(t *testing.T) {
	t.Parallel()
	h := fleet.Host{Name: "a", Zone: "z", Group: "g", Labels: map[string]string{"site": ""}}
	limits := []fleet.Limit{{Name: "group/g"}, {Name: "site/x"}, {Name: "site/"}, {Name: "customer/"},
		{Name: "z"}, {Name: "name/b"}, {Name: "name/a"}}
	if got := fleet.Needs(h, limits); !cmp.Equal(got, []string{"site/", "name/a"}) {
		t.Errorf("needs %v", got)
	}
}

// Each case is a whole file with all the mistakes that Parse must report for it.
func TestEveryMistakeOfALimitHasItsLine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, yaml string
		wants      []string // "line: part of the text"
	}{
		{"not a mapping", "limits: [a]\n", []string{"1: limits is a list: want a mapping"}},
		{"empty", "limits:\n", []string{"1: limits is empty: want a mapping"}},
		{"names", `
limits:
  site: 5
  group/g: 1
  host/a: 1
  a b/c: 1
  a/b:c: 1
  a/{b}: 1
  /b: 1
  a/: 1
`, []string{
			`3: limit "site": want key/value, such as site/zrh1`,
			`4: limit "group/g": the key group is taken`,
			`5: limit "host/a": the key host is taken`,
			`6: limit "a b/c": key: name "a b" has ' '`,
			`7: limit "a/b:c": value: name "b:c" has ':'`,
			`8: limit "a/{b}": value: name "{b}" has '{'`,
			`9: limit "/b": key: name is empty`,
			`10: limit "a/": value: name is empty`,
		}},
		{"numbers", `
limits:
  a/a: -1
  a/b: 1000001
  a/c: "5"
  a/d: 010
  a/e: 1.5
  a/f: many
  a/g:
  a/h: 99999999999999999999
  a/i: [1]
  a/j: {customer: acme}
  a/k: {max: x, zone: "", costumer: acme}
  a/l: {max: 1, zone: hub, customer: "a b"}
`, []string{
			`3: limit "a/a": max -1: want 0 to 1000000`,
			`4: limit "a/b": max 1000001: want 0 to 1000000`,
			`5: limit "a/c": max "5" is not a number: want 0 to 1000000, without quotes`,
			`6: limit "a/d": max "010" is not a number`,
			`7: limit "a/e": max "1.5" is not a number`,
			`8: limit "a/f": max "many" is not a number`,
			`9: limit "a/g": max has no value`,
			`10: limit "a/h": max "99999999999999999999" is not a number`,
			`11: limit "a/i": max is a list`,
			`12: limit "a/j": max is missing`,
			`13: limit "a/k": unknown key "costumer": did you mean customer?`,
			`13: limit "a/k": max "x" is not a number`,
			`13: limit "a/k": zone is empty`,
			`14: limit "a/l": zone name "hub" is taken`,
			`14: limit "a/l": customer name "a b" has ' '`,
		}},
		{"zones and customers", `
defaults: {known_hosts: /k}
hosts:
  - {name: a, address: a, zone: zrh, customer: acme, labels: {site: x, rack: r}}
  - {name: b, address: b, zone: fra, customer: acme, labels: {site: x}}
  - {name: c, address: c, zone: zrh, customer: globex, labels: {rack: r}}
limits:
  site/x: 5
  rack/r: {max: 1, customer: acme}
  customer/acme: 5
  name/c: {max: 1, zone: fra}
  zone/fra: {max: 1, zone: zrh}
  mirror/y: {max: 1, zone: nowhere, customer: nobody}
`, []string{
			`8: limit "site/x" is of hosts in two zones: host a at fleet.yaml:4 is in "zrh", host b at fleet.yaml:5 in "fra"`,
			`9: limit "rack/r" is of customer "acme", but host c at fleet.yaml:6, which has this label, is of "globex"`,
			`10: limit "customer/acme" is of hosts in two zones`,
			`11: limit "name/c" lives in zone "fra", but host c at fleet.yaml:6, which has this label, is in zone "zrh"`,
			`12: limit "zone/fra" has the zone "zrh"`,
		}},
		{"twice", "limits: {a/b: 1, a/b: 2}\n", []string{`1: key "a/b" is there already, at line 1`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			wantMistakes(t, tt.yaml, tt.wants)
		})
	}
}

// wantMistakes fails unless err has exactly these mistakes, each as "line: part of the text".
func wantMistakes(t *testing.T, yaml string, wants []string) {
	t.Helper()
	_, err := fleet.Parse(source("fleet.yaml", yaml))
	var got fleet.Mistakes
	if !errors.As(err, &got) {
		t.Fatalf("Parse: %v; want Mistakes", err)
	}
	for i := range max(len(got), len(wants)) {
		switch {
		case i >= len(got):
			t.Errorf("missing: %s", wants[i])
		case i >= len(wants):
			t.Errorf("unexpected: %v", got[i])
		case !strings.HasPrefix(got[i].Error(), "fleet.yaml:"+wants[i]):
			t.Errorf("mistake %d:\n got %v\nwant %s", i, got[i], wants[i])
		}
	}
}

func TestALimitInTwoFilesIsAMistake(t *testing.T) {
	t.Parallel()
	_, err := fleet.Parse(source("a.yaml", "limits: {site/x: 1}\n"), source("b.yaml", "\nlimits: {site/x: 2}\n"))
	want := `b.yaml:2: limit "site/x" is there already at a.yaml:1: keep one of them`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestTooManyLimits(t *testing.T) {
	t.Parallel()
	var limits []fleet.Limit
	for i := range 2001 {
		limits = append(limits, fleet.Limit{Name: fmt.Sprint("site/", i)})
	}
	_, err := fleet.New(nil, limits...)
	if err == nil || !strings.Contains(err.Error(), "2001 limits: at most 2000") {
		t.Errorf("got %v", err)
	}
}

package fleet_test

import (
	"fmt"
	"strings"
	"testing"

	"muster/fleet"
)

// small is the inventory that the tables below select from.
func small(t testing.TB) *fleet.Inventory {
	return parse(t, `
defaults: {known_hosts: /k}
hosts:
  - {name: fw001, address: a, customer: acme, group: g1, labels: {role: fw, version: 7, drained: true}}
  - {name: fw002, address: a, customer: acme, group: g1, labels: {role: fw, version: 9}}
  - {name: fw003, address: a, customer: globex, zone: fra, labels: {role: fw, version: 10}}
  - {name: fw010, address: a, customer: globex, zone: fra, labels: {role: vpn}}
  - {name: fw3, address: a, labels: {role: lb, example.com/site: berlin}}
  - {name: rack1-a2, address: a}
  - {name: rack1-a3, address: a}
  - {name: rack2-a2, address: a}
  - {name: rack2-a3, address: a}
  - {name: Web.example.com, address: a, customer: initech, labels: {role: web}}
`)
}

func TestSelectorPicks(t *testing.T) {
	t.Parallel()
	inv := small(t)
	tests := []struct{ selector, want string }{
		// Names and ranges.
		{"fw001", "fw001"},
		{" fw001 , fw002 ", "fw[001-002]"},
		{"fw001,fw001", "fw001"},
		{"fw[001-003]", "fw[001-003]"},
		{"fw[001-003,010]", "fw[001-003,010]"},
		{"fw[ 001 , 010 ]", "fw[001,010]"},
		{"fw[001-003/2]", "fw[001,003]"},
		{"fw[3]", "fw3"},
		{"fw[3,003]", "fw[3,003]"},
		{"fw0[01-03]", "fw[001-003]"},
		{"rack[1-2]-a[2-3]", "rack1-a[2-3],rack2-a[2-3]"},
		{"rack[1-2]-a2", "rack[1-2]-a2"},
		{"Web.example.com", "Web.example.com"},
		// Globs.
		{"fw*", "fw[3,001-003,010]"},
		{"fw?", "fw3"},
		{"fw??3", "fw003"},
		{"*3", "fw[3,003],rack[1-2]-a3"},
		{"rack*a*2", "rack[1-2]-a2"},
		{"*.example.*", "Web.example.com"},
		{"**", fleet.Fold(names(inv.Hosts()))},
		{"*", fleet.Fold(names(inv.Hosts()))},
		{"all", fleet.Fold(names(inv.Hosts()))},
		{"fw[001-003],!fw002", "fw[001,003]"},
		{"fw[001-003] , !fw002,!fw003,fw010", "fw[001,010]"},
		// Set operators, from left to right.
		{"fw[001-003]!fw002", "fw[001,003]"},
		{"fw[001-003]!fw002,fw010", "fw[001,003,010]"},
		{"fw[001-003] ! fw002 & fw[002-003]", "fw003"},
		{"fw001,fw002!fw002&fw002,fw3", "fw3"},
		{"fw001&fw002,fw3", "fw3"},
		{"all!rack*!Web.example.com&*0*", "fw[001-003,010]"},
		{"fw[001-003]^fw[002-003],fw3", "fw[3,001]"},
		{"fw001,fw001^fw002^fw001", "fw002"},
		{"fw00[1,1]^fw002", "fw[001-002]"},
		{"rack[1-2]*3", "rack[1-2]-a3"},
		{"fw0?[1,3]", "fw[001,003]"},
		// Parentheses.
		{"(fw001)", "fw001"},
		{"fw*!(fw3,fw001)", "fw[002-003,010]"},
		{"fw*!(fw*!fw001)", "fw001"},
		{"fw[001-003]&( fw001 , (fw002) )", "fw[001-002]"},
		{"(customer=acme,!drained)", "fw002"},
		{"rack1*,(role in (fw,vpn),customer=globex)", "fw[003,010],rack1-a[2-3]"},
		{"(({role=fw})!fw001)&(fw001,fw002)", "fw002"},
		// Labels and fields.
		{"customer=acme", "fw[001-002]"},
		{"customer==acme", "fw[001-002]"},
		{"customer = acme , role = fw", "fw[001-002]"},
		{"customer=acme,role in (fw,vpn),!drained", "fw002"},
		{"role in (fw, vpn)", "fw[001-003,010]"},
		{"role notin (fw,vpn),role", "Web.example.com,fw3"},
		{"role!=fw,role", "Web.example.com,fw[3,010]"},
		{"!role", "rack1-a[2-3],rack2-a[2-3]"},
		{"!customer,role!=x", "fw3,rack1-a[2-3],rack2-a[2-3]"},
		{"version>7", "fw[002-003]"},
		{"version<10,!drained", "fw002"},
		{"zone=fra", "fw[003,010]"},
		{"zone=default,customer", "Web.example.com,fw[001-002]"},
		{"group=g1", "fw[001-002]"},
		{"!group,role=fw", "fw003"},
		{"name=fw001", "fw001"},
		{"name in (fw001,fw3)", "fw[3,001]"},
		{"drained=true", "fw001"},
		{"example.com/site=berlin", "fw3"},
		{"!nosuchlabel,role=web", "Web.example.com"},
		// Both together.
		{"{drained}", "fw001"},
		{"{!drained}&fw[001-003]", "fw[002-003]"},
		{"{role=fw}!fw001", "fw[002-003]"},
		{"fw[001-003]&{customer=acme}", "fw[001-002]"},
		{"fw3,{role in (fw,vpn),customer=globex}", "fw[3,003,010]"},
		{"all!{role}", "rack1-a[2-3],rack2-a[2-3]"},
		{"all!{nosuchlabel}&fw3", "fw3"},
		{"{role=fw},{role=vpn}!{zone=fra}", "fw[001-002]"},
	}
	for _, tt := range tests {
		sel, err := fleet.ParseSelector(tt.selector)
		if err != nil {
			t.Errorf("ParseSelector(%q): %v", tt.selector, err)
			continue
		}
		if got, want := sel.String(), strings.TrimSpace(tt.selector); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
		hosts, err := inv.Select(sel)
		if got := fleet.Fold(names(hosts)); got != tt.want || err != nil {
			t.Errorf("%s picks %q, %v; want %q", tt.selector, got, err, tt.want)
		}
	}
}

func TestSelectionThatFailsSaysWhatComesNearest(t *testing.T) {
	t.Parallel()
	inv := small(t)
	tests := []struct {
		selector string
		wants    []string // parts of the message
	}{
		{"fw004", []string{`selector "fw004": fw004 is not in the inventory; nearest: fw001`}},
		{"fw[001-009]", []string{"6 names are not in the inventory: fw004, fw005, fw006, fw007, fw008 and 1 more"}},
		{"fw1", []string{"fw1 is not in the inventory; nearest: fw001"}},
		{"fw[1-2]", []string{"2 names are not in the inventory: fw1, fw2; nearest: fw[001-002]"}},
		{"fw[00001-00003]", []string{"nearest: fw[3,001-003]"}},
		{"fw[1-2],vpm", []string{"nearest: fw[001-002], role=vpn"}},
		{"rack[01-02]-a[02-03]", []string{"nearest: rack1-a[2-3],rack2-a[2-3]"}},
		{"fw[0,10]", []string{"nearest: fw010"}},
		{"all!fw0001", []string{"fw0001 is not in the inventory; nearest: fw001"}},
		{"fw001&nosuch", []string{"nosuch is not in the inventory; there are "}},
		{"vpx*", []string{"vpx* is not in the inventory"}},
		{"fw001!vpx*", []string{"vpx* is not in the inventory"}},
		{"acme", []string{"acme is not in the inventory; nearest: customer=acme"}},
		{"fw,drained", []string{"2 names", "nearest: role=fw", "{drained}"}},
		{"FW001", []string{"nearest: fw001"}},
		{"ALL", []string{"ALL is not in the inventory"}},
		{"customer=acmee", []string{"picks no host: no host has customer=acmee, nearest: customer=acme"}},
		{"customer=zzzzzz", []string{"there are: customer=acme, customer=globex, customer=initech"}},
		{"rol=fw", []string{"no host has the label rol, nearest: role"}},
		{"role in (fv,vpm)", []string{"role=fv, nearest: role=fw", "role=vpm, nearest: role=vpn"}},
		{"customer=acme,role=vpn", []string{"no host meets all its terms together"}},
		{"version>100", []string{"no host meets all its terms together"}},
		{"fw001!fw001", []string{"picks no host: no host meets all"}},
		{"all!*", []string{"picks no host: no host meets all"}},
		{"customer=acme,customer=globex", []string{"picks no host: no host meets all"}},
		{"fw001&{role=lbb}", []string{"no host has role=lbb, nearest: role=lb"}},
		{"!fw001,role=fw", []string{`"fw001" is a host name, not a label`, "{role=fw}!fw001"}},
		{"!fw001", []string{`"fw001" is a host name, not a label`}},
		{"fw001,role=fw", []string{`"fw001" is a host name, not a label`}},
		{"all,role=fw", []string{`"all" is a host name, not a label`}},
		{"{!fw001}", []string{`"fw001" is a host name, not a label`}},
	}
	for _, tt := range tests {
		sel, err := fleet.ParseSelector(tt.selector)
		if err != nil {
			t.Errorf("ParseSelector(%q): %v", tt.selector, err)
			continue
		}
		hosts, err := inv.Select(sel)
		if err == nil || hosts != nil {
			t.Errorf("%s picks %v, %v; want an error", tt.selector, names(hosts), err)
			continue
		}
		for _, want := range tt.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s:\n got %v\nwant %s", tt.selector, err, want)
			}
		}
	}
}

func TestBadSelectorsAreRefused(t *testing.T) {
	t.Parallel()
	tests := []struct{ selector, want string }{
		{"", "is empty: name hosts, or say all"},
		{" \t\n", "is empty"},
		{"fw1\nfw2", "line break"},
		{"fw1\x00,!x", "control character"},
		{"role=fw\x00,!x", "control character"},
		{"fw1 fw2", "has a blank: join hosts with ','"},
		{"fw[1-2] fw3", "has a blank"},
		{",", "',' has nothing before it"},
		{",fw1", "',' has nothing before it"},
		{"&fw1", "'&' has nothing before it"},
		{"fw1,", "',' has nothing behind it"},
		{"fw1!", "'!' has nothing behind it"},
		{"fw1,,fw2", "',' has nothing behind it"},
		{"fw1!!fw2", "'!' has nothing behind it"},
		{"!fw1&{role=fw}", "'!' has nothing before it"},
		{"fw[1-2", "'[' is not closed"},
		{"fw[1-2,fw3[1]", "'[' is not closed"},
		{"fw[[1]]", "'[' is not closed"},
		{"fw1]", "']' without '['"},
		{"fw[]", "is not a number"},
		{"fw[1-]", "is not a number"},
		{"fw[-1]", "is not a number"},
		{"fw[1,,2]", "is not a number"},
		{"fw[a-c]", "is not a number"},
		{"fw[1-2-3]", "is not a number"},
		{"fw[1-2/]", "is not a number"},
		{"fw[1-2/x]", "is not a number"},
		{"fw[1-2/-1]", "is not a number"},
		{"fw[1-2/3/4]", "is not a number"},
		{"fw[1-9/0]", "step 0"},
		{"fw[5/2]", "a step needs a range"},
		{"fw[3-1]", "runs backwards"},
		{"fw[01-3]", "padded on one side"},
		{"fw[1-03]", "padded on one side"},
		{"fw[9-011]", "padded on one side"},
		{"fw[001-1000]", "padded on one side"},
		{"fw1[8-12]", "the range goes on from the digit before it"},
		{"fw0[1,8-12]", "the range goes on from the digit before it"},
		{"fw[1-999999999]", "more than 100000 names"},
		{"fw[1-100001]", "more than 100000 names"},
		{"fw[1-60000,1-60000]", "more than 100000 names"},
		{"fw[1-1000]x[1-1000]", "more than 100000 names"},
		{"fw[1-60000],vpn[1-60000]", "more than 100000 names"},
		{"fw[1-9999999999999999999999]", "is not a number of 1 to 18 digits"},
		{"fw[0-999999999999999999]", "more than 100000 names"},
		{strings.Repeat("[1]", 300), "names of more than 253 bytes"},
		{strings.Repeat("a", 300), "at most 253"},
		{strings.Repeat("a*", 300), "at most 253"},
		{"-oProxyCommand", "starts with"},
		{"-oProxyCommand=touch", "bad label term"},
		{"fw*[1-51]", "stands for 51 globs: at most 50"},
		{"^fw1", "'^' has nothing before it"},
		{"fw1^", "'^' has nothing behind it"},
		{"@hosts.txt", "only the command line reads a file"},
		{"fẃ*", "has 'ẃ'"},
		{"fw1;reboot", "has ';'"},
		{"fw'1'", `has '\''`},
		{"fw[1-3],role=fw", "label terms stand in braces"},
		{"fw*,role=fw", "label terms stand in braces"},
		{"role=fw&fw1", "label terms stand in braces"},
		{"!fw*", "label terms stand in braces"},
		{"{role=fw},role=vpn", "stand in braces"},
		{"{}", "braces are empty"},
		{"{ }", "braces are empty"},
		{"{role=fw", "'{' is not closed"},
		{"role=fw}", "label terms stand in braces"},
		{"fw1}", "stand in braces"},
		{"(a", "'(' is not closed: want ')'"},
		{"(a))", "between ')' and what follows"},
		{"(a)(b)", "between ')' and what follows"},
		{"(a)b", "between ')' and what follows"},
		{"( )", "the parentheses are empty"},
		{"(a,)", "',' has nothing behind it"},
		{"(role=fw,fw*)", "label terms stand in braces"},
		{strings.Repeat("(", 9) + "a" + strings.Repeat(")", 9), "more than 8 parentheses"},
		{"task:", "name is empty"},
		{"task:a b/failed", "has ' '"},
		{"task:x/", "is not an outcome of a job"},
		{"task:x/!", "is not an outcome of a job"},
		{"task:x/a/b", "is not an outcome of a job"},
		{"task:x/!!failed", "is not an outcome of a job"},
		{"{a}{b}", "behind '}'"},
		{"{a} fw1", "want ',' '!' '&' or '^' behind '}'"},
		{"fw1{a}", "stand in braces"},
		{"{{a}}", "behind '}'"},
		{"role=", ""},
		{"role=a b", "bad label term"},
		{"role in fw", "has a blank"},
		{"role in (fw", "bad label term"},
		{"role in", "has a blank"},
		{"=fw", "bad label term"},
		{"role=fw,", "bad label term"},
		{"role=fw,,x", "bad label term"},
		{"!", "bad label term"},
		{"!!x", "bad label term"},
		{"x===y", "bad label term"},
		{"x>y", "bad label term"},
		{"()", "the parentheses are empty"},
		{"a b=c", "bad label term"},
		{"role=" + strings.Repeat("a", 64), "bad label term"},
		{strings.Repeat("!a,", 100) + "!a", "too many"},
		{strings.Repeat("a*,", 100) + "a", "too many"},
		{strings.Repeat("a&", 100) + "a", ""},
		{strings.Repeat("(a),", 100) + "a", "too many"},
		{"a in (" + strings.Repeat("x,", 3000) + "y)", ""}, // one value, many times
		{"a in (" + numbered(2000) + ")", ""},
		{"a=" + strings.Repeat("b", 20_000), "at most 16384"},
		{strings.Repeat("a,", 1<<20), "at most 1048576"},
	}
	for _, tt := range tests {
		sel, err := fleet.ParseSelector(tt.selector)
		short := tt.selector[:min(len(tt.selector), 40)]
		switch {
		case tt.want == "":
			if err != nil {
				t.Errorf("ParseSelector(%q): %v; want none", short, err)
			}
		case err == nil || !strings.Contains(err.Error(), tt.want):
			t.Errorf("ParseSelector(%q): error %v, want %q", short, err, tt.want)
		case len(err.Error()) > 700 || strings.ContainsAny(err.Error(), "\n\x00"):
			t.Errorf("ParseSelector(%q): unfit message %q", short, err)
		case sel.String() != "":
			t.Errorf("ParseSelector(%q) returned a selector beside its error", short)
		}
	}
}

func TestZeroSelectorAndEmptyInventoryPickNothing(t *testing.T) {
	t.Parallel()
	if hosts, err := small(t).Select(fleet.Selector{}); err == nil || hosts != nil {
		t.Errorf("zero selector picks %v, %v", hosts, err)
	}
	inv := parse(t, "hosts: []")
	for _, text := range []string{"all", "*", "!x", "x=y", "a", "all!{x}"} {
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if hosts, err := inv.Select(sel); err == nil || hosts != nil {
			t.Errorf("%s of no hosts picks %v, %v", text, hosts, err)
		}
	}
}

// The expected results are those of nodeset 1.9.1, for names that it does not expand. Only
// muster requires that each name is in the inventory.
func TestRangesMeanWhatClusterShellMakesOfThem(t *testing.T) {
	t.Parallel()
	tests := []struct{ selector, want string }{
		{"fw[01-10]", "fw01 fw02 fw03 fw04 fw05 fw06 fw07 fw08 fw09 fw10"},
		{"fw[1-3,7]", "fw1 fw2 fw3 fw7"},
		{"fw[1-9/2]", "fw1 fw3 fw5 fw7 fw9"},
		{"fw[1-10/3]", "fw1 fw4 fw7 fw10"},
		{"fw[01-10/3]", "fw01 fw04 fw07 fw10"},
		{"fw[1-2]x[1-2]", "fw1x1 fw1x2 fw2x1 fw2x2"},
		{"fw[08-12]", "fw08 fw09 fw10 fw11 fw12"},
		{"fw[99-101]", "fw99 fw100 fw101"},
		{"fw[099-100]", "fw099 fw100"},
		{"fw[00-01]", "fw00 fw01"},
		{"fw[001-002,1-2]", "fw1 fw2 fw001 fw002"},
		{"fw01[2-3]", "fw012 fw013"},
		{"fw[1-2]3", "fw13 fw23"},
		{"fw[1, 2]", "fw1 fw2"},
		{"a[1-3],b1!a2", "a1 a3 b1"},
		{"a[1-3]!a2,b1", "a1 a3 b1"},
		{"a[1-5]&a[3-9],b1", "a3 a4 a5 b1"},
		{"a1,b1!a1&b1", "b1"},
		{"fw[1-100]!fw[2-99]", "fw1 fw100"},
	}
	var hosts []fleet.Host
	for _, format := range []string{"fw%d", "fw%02d", "fw%03d", "a%d", "b%d", "fw1x%d", "fw2x%d"} {
		for i := range 102 {
			hosts = append(hosts, plainHost(fmt.Sprintf(format, i)))
		}
	}
	inv, err := fleet.New(unique(hosts))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		want := fleet.Fold(strings.Fields(tt.want))
		if got := pick(t, inv, tt.selector); got != want {
			t.Errorf("%s picks %s, want %s", tt.selector, got, want)
		}
	}
}

func plainHost(name string) fleet.Host {
	return fleet.Host{
		Name: name, Address: "192.0.2.1", Port: 22, User: "root", Zone: fleet.DefaultZone,
		Fence: fleet.FenceAuto,
	}
}

func unique(hosts []fleet.Host) []fleet.Host {
	seen := map[string]bool{}
	var result []fleet.Host
	for _, h := range hosts {
		if !seen[h.Name] {
			seen[h.Name] = true
			result = append(result, h)
		}
	}
	return result
}

// numbered returns 1,2,3,…,n.
func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, ",%d", i+1)
	}
	return b.String()[1:]
}

// The page on inventories shows groups of Ansible in host sets, where a host could stand.
func TestSelectorsNameGroupsOfAnsible(t *testing.T) {
	t.Parallel()
	inv := parse(t, `
defaults: {known_hosts: /k}
hosts:
  - {name: a1, address: a, labels: {group.web: true}}
  - {name: a2, address: a, labels: {group.web: true, group.staging: true}}
  - {name: a3, address: a, labels: {group.db: true, group.odd: no}}
  - {name: group.both, address: a, labels: {group.both: true}}
  - {name: group.host, address: a}
`)
	for selector, want := range map[string]string{
		"group.web":                         "a[1-2]",
		"group.web,!group.staging":          "a1",
		"group.web!group.staging":           "a1",
		"!group.staging,group.web":          "a1", // labels
		"group.web&group.staging":           "a2",
		"group.web,group.db":                "a[1-3]",
		"all!group.web!{group.both}":        "a3,group.host",
		"(group.web,a3)&{group.db}":         "a3",
		"group.host":                        "group.host",
		"{name=group.both}":                 "group.both",
		"{group.both=true},group.db,!a1,a1": "a[1,3],group.both",
	} {
		if got := pick(t, inv, selector); got != want {
			t.Errorf("%s: %s, want %s", selector, got, want)
		}
	}
	for selector, want := range map[string]string{
		"group.webb":    "group.webb is not in the inventory; nearest: group.web",
		"web":           "web is not in the inventory; nearest: group.web",
		"a1!group.none": "group.none is not in the inventory",
		"group.odd":     "group.odd is not in the inventory",
		"group.both":    `"group.both" is a host and a group: write {name=group.both} or {group.both=true}`,
	} {
		sel, err := fleet.ParseSelector(selector)
		if err == nil {
			_, err = inv.Select(sel)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", selector, err, want)
		}
	}
}

package fleet_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster/fleet"
)

func TestMistakesInSelectorsHaveAColumn(t *testing.T) {
	t.Parallel()
	tests := []struct {
		selector string
		column   int
		want     string
	}{
		{"", 0, "is empty"},
		{"fw[1-2", 3, `selector "fw[1-2", column 3: '[' is not closed`},
		{"  fw[1-2", 5, "'[' is not closed"},
		{"fw001, fw[1-x]", 11, "is not a number"},
		{"fw1,,fw2", 4, "has nothing behind it"},
		{"fw1 & fw2 !", 11, "has nothing behind it"},
		{"fw001,fw0;1", 10, "has ';'"},
		{"fw001,fw1 fw2", 10, "has a blank"},
		{"fw001,fw]", 9, "']' without '['"},
		{"fw001&{role=fw,x in y}", 16, "bad label term"},
		{"customer=acme,role=a b", 15, "bad label term"},
		{"customer=acme,fw*", 17, "no ranges, globs"},
		{"fw001!(fw[2],role=x)", 10, "no ranges, globs"},
		{"fw001!(fw002,fw[2-1])", 17, "runs backwards"},
		{"all&(fw001", 5, "'(' is not closed"},
		{"fw001,task:/failed", 12, "name is empty"},
		{"fw001,task:x/Failed", 14, "is not an outcome of a job"},
		{"fẃ,fw001", 2, "has 'ẃ'"},
		{"\u00a0fw[", 4, "is not closed"},
		{strings.Repeat("fw001,", 50) + "fw[,x", 303, ",fw001,fw001,fw[,x\", column 303: '[' is"},
	}
	for _, tt := range tests {
		_, err := fleet.ParseSelector(tt.selector)
		var e *fleet.SelectorError
		if !errors.As(err, &e) {
			t.Errorf("ParseSelector(%q): error %v, want a *SelectorError", tt.selector, err)
			continue
		}
		if e.Column != tt.column || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("ParseSelector(%q): column %d, %v; want %d, %q", tt.selector, e.Column, err,
				tt.column, tt.want)
		}
	}
}

func TestWorkLeavesOutDrainedHostsUnlessTheyAreMentioned(t *testing.T) {
	t.Parallel()
	// The file gives fw001 the label; fw010 got it later.
	inv := small(t).WithLabels(map[string]map[string]string{
		"fw010": {fleet.Drained: "true"}, "gone": {fleet.Drained: "true"}})
	tests := []struct{ selector, want, drained string }{
		{"fw0*", "fw[002-003]", "fw[001,010]"},
		{"fw[001-002]", "fw002", "fw001"},
		{"fw002", "fw002", ""},
		{"customer=acme", "fw002", "fw001"},
		{"customer=acme,!drained", "fw002", ""},
		{"customer=acme,drained", "fw001", ""},
		{"{drained}", "fw[001,010]", ""},
		{"fw001&{drained}", "fw001", ""},
		{"fw*&(fw3,({drained}))", "fw[3,001,010]", ""},
		{"fw[001-002],{!drained,role=web}", "Web.example.com,fw[001-002]", ""},
	}
	for _, tt := range tests {
		sel, err := fleet.ParseSelector(tt.selector)
		if err != nil {
			t.Fatal(err)
		}
		p, err := inv.Pick(sel)
		if got := fleet.Fold(names(p.Hosts)); got != tt.want || err != nil {
			t.Errorf("%s picks %s, %v; want %s", tt.selector, got, err, tt.want)
		}
		if got := fleet.Fold(p.Drained); got != tt.drained {
			t.Errorf("%s leaves out %q, want %q", tt.selector, got, tt.drained)
		}
	}
	sel, err := fleet.ParseSelector("fw001,fw010")
	if err != nil {
		t.Fatal(err)
	}
	_, err = inv.Pick(sel)
	if err == nil || !strings.Contains(err.Error(), "no host but drained ones, fw[001,010]: undrain") {
		t.Errorf("only drained hosts: %v", err)
	}
	if hosts, err := inv.Select(sel); len(hosts) != 2 || err != nil {
		t.Errorf("Select: %v, %v; want both, drained or not", hosts, err)
	}
}

func TestMoreLabelsReplaceThoseOfTheFile(t *testing.T) {
	t.Parallel()
	before := small(t)
	inv := before.WithLabels(map[string]map[string]string{
		"fw001": {"role": "spare", "fact.os": "debian"}, "fw002": {"fact.os": "openwrt"}})
	for _, tt := range []struct{ selector, want string }{
		{"role=fw", "fw[002-003]"}, {"role=spare", "fw001"}, {"fact.os=debian", "fw001"},
	} {
		if got := pick(t, inv, tt.selector); got != tt.want {
			t.Errorf("%s picks %s, want %s", tt.selector, got, tt.want)
		}
	}
	if got := pick(t, before, "role=fw"); got != "fw[001-003]" {
		t.Errorf("the inventory before: role=fw picks %s", got)
	}
	if inv.Version() != before.Version() {
		t.Error("the version depends on labels that are not of the inventory")
	}
}

func TestHostsOfEarlierTasks(t *testing.T) {
	t.Parallel()
	inv := small(t)
	failed := fleet.Earlier{Task: "0wcy7y2fb2", Outcome: "failed"}
	found := map[fleet.Earlier][]string{
		failed:               {"fw001", "fw010", "gone1", "gone2"},
		{Task: "0wcy7y2fb2"}: {"fw001", "fw002", "fw010", "gone1", "gone2"},
		{Task: "0wcy7y2fb2", Outcome: "succeeded", Not: true}: {"fw002"},
		{Task: "0wcy7y2fb2", Outcome: "timeout"}:              nil,
		{Task: "x", Outcome: "failed"}:                        {"gone1"},
	}
	tests := []struct{ selector, want, gone string }{
		{"task:0wcy7y2fb2/failed", "fw[001,010]", "gone[1-2]"},
		{"task:0wcy7y2fb2", "fw[001-002,010]", "gone[1-2]"},
		{"task:0wcy7y2fb2/!succeeded", "fw002", ""},
		{"fw3,task:0wcy7y2fb2/!succeeded!fw002", "fw3", ""},
		{"fw*!task:0wcy7y2fb2/failed", "fw[3,002-003]", "gone[1-2]"},
		{"task:0wcy7y2fb2/failed&{customer=globex}", "fw010", "gone[1-2]"},
		{"fw003,(task:0wcy7y2fb2/!succeeded)", "fw[002-003]", ""},
		{"all&task:0wcy7y2fb2/failed,task:0wcy7y2fb2/timeout", "fw[001,010]", "gone[1-2]"},
	}
	for _, tt := range tests {
		sel, err := fleet.ParseSelector(tt.selector)
		if err != nil {
			t.Fatal(err)
		}
		p, err := inv.Pick(sel.Resolve(found))
		if err != nil {
			t.Errorf("%s: %v", tt.selector, err)
			continue
		}
		got := fleet.Fold(append(names(p.Hosts), p.Drained...))
		if got != tt.want || fleet.Fold(p.Gone) != tt.gone {
			t.Errorf("%s picks %s, gone %v; want %s, %s", tt.selector, got, p.Gone, tt.want, tt.gone)
		}
	}
	for selector, want := range map[string]string{
		"task:0wcy7y2fb2/timeout": "no job of task 0wcy7y2fb2 is known to have ended timeout",
		"task:x/failed":           "no longer in the inventory: gone1",
		"task:y/failed":           "only a server knows the hosts of tasks",
	} {
		sel, err := fleet.ParseSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inv.Pick(sel.Resolve(found)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", selector, err, want)
		}
	}
	sel, err := fleet.ParseSelector("task:b/failed,(task:a!task:b/failed),fw1")
	if err != nil {
		t.Fatal(err)
	}
	want := []fleet.Earlier{{Task: "a"}, {Task: "b", Outcome: "failed"}}
	if diff := cmp.Diff(want, sel.Earlier()); diff != "" {
		t.Errorf("Earlier (-want +got):\n%s", diff)
	}
}

func TestHintsKnowLabelsAndValues(t *testing.T) {
	t.Parallel()
	inv := small(t)
	for word, want := range map[string]string{
		"acmee": "customer=acme", "globx": "customer=globex", "initec": "customer=initech",
		"g1": "group=g1", "berlim": "example.com/site=berlin", "versoin": "{version}",
		"web": "role=web",
	} {
		sel, err := fleet.ParseSelector(word)
		if err != nil {
			t.Fatal(err)
		}
		_, err = inv.Select(sel)
		if err == nil || !slices.Contains(strings.FieldsFunc(err.Error(), func(r rune) bool {
			return r == ' ' || r == ','
		}), want) {
			t.Errorf("%s: %v; want the hint %s", word, err, want)
		}
	}
}

// The error lists every lost name with similar ones, not only the first few.
func TestTheErrorListsEveryLostName(t *testing.T) {
	t.Parallel()
	v, err := fleet.Parse(fleet.Source{Name: "f", Data: []byte("defaults: {known_hosts: /k}\nhosts:\n" +
		"  - {name: fw1, address: 10.0.0.1}\n  - {name: vpn1, address: 10.0.0.2}\n")})
	if err != nil {
		t.Fatal(err)
	}
	sel, err := fleet.ParseSelector("fw[1-9],vpn2,fw9")
	if err != nil {
		t.Fatal(err)
	}
	_, err = v.Select(sel)
	var lost *fleet.LostError
	if !errors.As(err, &lost) || len(lost.Lost) != 9 {
		t.Fatalf("got %v, want 9 names", err)
	}
	if last := lost.Lost[8]; last.Name != "vpn2" || !slices.Contains(last.Nearest, "vpn1") {
		t.Errorf("the last is %+v", last)
	}
	for name, want := range map[string]bool{"fw1": true, "fw9": true, "vpn2": true, "fw10": false, "vpn1": false} {
		if sel.NamesHost(name) != want {
			t.Errorf("it names %s: %t", name, !want)
		}
	}
}

func TestARuleKeepsTheHostsThatThereAre(t *testing.T) {
	t.Parallel()
	inv := small(t)
	for _, c := range []struct {
		selector   string
		want, lost string
	}{
		{"fw001", "fw001", ""},
		{"fw001,gone1,gone[2-3]", "fw001", "gone[1-3]"},
		{"gone*", "", "gone*"},
		{"fw001!gone1", "fw001", "gone1"},
		{"nothing=here", "", ""},
		{"fw001&{nothing=here}", "", ""},
	} {
		sel, err := fleet.ParseSelector(c.selector)
		if err != nil {
			t.Fatal(err)
		}
		picked, lost, err := inv.Known(sel)
		if err != nil {
			t.Errorf("%q: %v", c.selector, err)
		}
		var names []string
		for i := range picked {
			names = append(names, inv.Hosts()[i].Name)
		}
		if got := strings.Join(names, ","); got != c.want || fleet.Fold(lost) != c.lost {
			t.Errorf("%q picks %q and has lost %q, want %q and %q", c.selector, got, lost, c.want, c.lost)
		}
	}
	for _, text := range []string{"role=fw,!fw001", "task:0wcy7y2fb2"} {
		sel, err := fleet.ParseSelector(text)
		if err != nil {
			t.Fatal(err)
		}
		if picked, _, err := inv.Known(sel); err == nil {
			t.Errorf("%q has no error", text)
		} else {
			for i := range picked {
				t.Errorf("%q picks host %d in spite of %v", text, i, err)
			}
		}
	}
}

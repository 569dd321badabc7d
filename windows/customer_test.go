package windows

import (
	"slices"
	"testing"
	"time"
)

// A window of a site that one customer had approved once opened the hosts of another customer
// there, and hid the windows that the other had approved.
func TestAWindowOpensOnlyForTheCustomerWhoApprovedIt(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-11-22T01:30:00Z") // in sunday
	site, own := sunday(t), sunday(t)
	site.Name, site.For, site.Approval = "site", Scope{Site, "zrh1"}, true
	own.Name, own.For, own.Approval = "own", Scope{Customer, "globex"}, true
	own.Times.Recurrences, own.End, own.Length = []Recurrence{recurrence(t, "0 12 * * *")}, 0, 2*time.Hour
	until := now.Add(300 * 24 * time.Hour)
	by := func(id, window, hash, customer string) Approval {
		return Approval{ID: id, Window: window, Hash: hash, Customer: customer, From: now.Add(-time.Hour), Until: until}
	}
	acme := Place{Host: "a1", Site: "zrh1", Customer: "acme"}
	globex := Place{Host: "g1", Site: "zrh1", Customer: "globex"}
	ownApproved := by("o", "own", own.Hash(), "globex")
	narrow := site
	narrow.Customer, narrow.Approval = "acme", false
	for _, test := range []struct {
		name      string
		approvals []Approval
		windows   []Window
		open      map[string]bool // at now, by host
		holding   map[string][]string
	}{
		{name: "by acme", approvals: []Approval{by("x", "site", site.Hash(), "acme"), ownApproved},
			open:    map[string]bool{"a1": true, "g1": false},
			holding: map[string][]string{"a1": {"site"}, "g1": {"own"}}},
		{name: "by both", approvals: []Approval{by("x", "site", site.Hash(), "acme"),
			by("y", "site", site.Hash(), "globex"), ownApproved},
			open:    map[string]bool{"a1": true, "g1": true},
			holding: map[string][]string{"a1": {"site"}, "g1": {"site"}}},
		{name: "by nobody", approvals: []Approval{ownApproved},
			open: map[string]bool{}, holding: map[string][]string{"g1": {"own"}}},
		{name: "by acme, and void", approvals: []Approval{by("x", "site", site.Hash(), "acme").Void(now, "changed")},
			open: map[string]bool{}, holding: map[string][]string{"a1": {"site"}, "g1": {"own"}}},
		{name: "withdrawn by globex: as before its approval", approvals: []Approval{
			by("x", "site", site.Hash(), "acme"), ownApproved},
			open:    map[string]bool{"a1": true},
			holding: map[string][]string{"a1": {"site"}, "g1": {"own"}}},
		{name: "one of two withdrawn", approvals: []Approval{
			by("z", "site", site.Hash(), "globex").Void(now, "changed"), ownApproved},
			open:    map[string]bool{},
			holding: map[string][]string{"g1": {"site"}}},
		{name: "of hosts without a customer", approvals: []Approval{by("x", "site", site.Hash(), ""), ownApproved},
			open: map[string]bool{}, holding: map[string][]string{"g1": {"own"}}},
		{name: "which is of acme", windows: []Window{narrow, own},
			open:    map[string]bool{"a1": true},
			holding: map[string][]string{"a1": {"site"}, "g1": {"own"}}},
	} {
		windows := test.windows
		if windows == nil {
			windows = []Window{site, own}
		}
		book := NewBook(Agreed{Windows: windows, Approvals: test.approvals})
		for _, p := range []Place{acme, globex} {
			if v := book.Admit(p, now, Work{Window: true}); v.OK != test.open[p.Host] {
				t.Errorf("%s, %s: open %t, %s", test.name, p.Host, v.OK, v.Why)
			}
			var names []string
			e := book.Explain(p)
			for _, w := range e.Windows {
				names = append(names, w.Name)
			}
			if !slices.Equal(names, test.holding[p.Host]) {
				t.Errorf("%s, %s: %v hold, want %v; others %d", test.name, p.Host, names, test.holding[p.Host], len(e.Others))
			}
			if o, ok := first(book.OccurrencesAt(p, "site", now)); ok && o.OK != test.open[p.Host] {
				t.Errorf("%s, %s: the occurrence is approved: %t", test.name, p.Host, o.OK)
			}
		}
	}
}

func TestAFreezeOfACustomerAtASiteIsNoOtherOnes(t *testing.T) {
	t.Parallel()
	const text = "freezes:\n- {name: f, site: zrh1, customer: acme, zone: UTC, from: 2026-01-01}\n"
	a, err := Parse([]File{{"w.yaml", text}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	book, now := NewBook(a), instant(t, "2026-11-22T01:30:00Z")
	for customer, want := range map[string]bool{"acme": true, "globex": false} {
		if _, _, frozen := book.Frozen(Place{Host: "x", Site: "zrh1", Customer: customer}, now); frozen != want {
			t.Errorf("%s: frozen %t", customer, frozen)
		}
	}
}

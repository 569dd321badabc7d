package windows

import (
	"slices"
	"strings"
	"testing"
	"time"
)

var acme = Place{Host: "fw001", Group: "pair-1", Site: "zrh1", Customer: "acme"}

func firmware(estimate time.Duration) Work {
	return Work{Runbook: "firmware", Window: true, Estimate: estimate, Reserve: 10 * time.Minute}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	open := sunday(t) // 2026-11-22 01:00 to 03:00 UTC, nothing after 02:45
	xmas := Freeze{Name: "xmas", For: Scope{Customer, "acme"}, Zone: open.Zone, Reason: "peak season",
		From: wall(t, "2026-11-22 03:00"), Until: wall(t, "2026-11-29 03:00")}
	lifted := Freeze{Name: "incident"}
	lifted.From = wall(t, "2026-11-01")
	for _, test := range []struct {
		name, now string
		freezes   []Freeze
		change    func(*Window)
		work      Work
		ok        bool
		next, why string
	}{
		{name: "in it", now: "2026-11-22T01:00:00Z", work: firmware(20 * time.Minute), ok: true},
		{name: "a moment before", now: "2026-11-22T00:59:59.999Z", work: firmware(20 * time.Minute),
			next: "2026-11-22T01:00:00Z", why: "outside of its window"},
		{name: "it just fits", now: "2026-11-22T01:00:00Z", work: firmware(110 * time.Minute), ok: true},
		{name: "it fits no more", now: "2026-11-22T01:00:01Z", work: firmware(110 * time.Minute),
			next: "2026-11-29T01:00:00Z", why: "the window ends in 1h59m59s, and the work takes 1h50m0s and 10m0s"},
		{name: "the last moment", now: "2026-11-22T02:44:59Z", work: Work{Window: true}, ok: true},
		{name: "cut off", now: "2026-11-22T02:45:00Z", work: Work{Window: true},
			next: "2026-11-29T01:00:00Z", why: "nothing is begun any more"},
		{name: "longer than any", now: "2026-11-22T01:00:00Z", work: firmware(3 * time.Hour),
			why: "no opening of 3h10m0s in the next 400 days"},
		{name: "not for this runbook", now: "2026-11-22T01:00:00Z", work: firmware(0),
			change: func(w *Window) { w.Runbooks = []string{"reboot"} },
			why:    "outside of its window: window acme-sunday is not for runbook firmware"},
		{name: "not approved", now: "2026-11-22T01:00:00Z", work: firmware(0),
			change: func(w *Window) { w.Approval = true },
			why:    "outside of its window: no approved window: its customer has to approve acme-sunday"},
		{name: "no window", now: "2026-11-22T01:00:00Z", work: firmware(0),
			change: func(w *Window) { w.For.Name = "other" }, why: "there is no window for host fw001"},
		{name: "valid no more", now: "2026-11-22T01:00:00Z", work: firmware(0),
			change: func(w *Window) { w.Until = wall(t, "2026-11-01") }, why: "no opening"},
		{name: "up to the freeze", now: "2026-11-22T01:00:00Z", freezes: []Freeze{xmas},
			work: firmware(50 * time.Minute), ok: true},
		{name: "the freeze would come in between", now: "2026-11-22T01:00:01Z", freezes: []Freeze{xmas},
			work: firmware(50 * time.Minute), next: "2026-11-29T02:00:00Z", why: "the window ends in 59m59s"},
		{name: "frozen", now: "2026-11-22T02:00:00Z", freezes: []Freeze{xmas}, work: firmware(0),
			next: "2026-11-29T02:00:00Z", why: "frozen by xmas (peak season) until 2026-11-29T02:00:00Z"},
		{name: "frozen, and overridden", now: "2026-11-22T02:00:00Z", freezes: []Freeze{xmas}, ok: true,
			work: Work{Window: true, Override: "the board says so"}},
		{name: "overridden, but no window", now: "2026-11-22T04:00:00Z", freezes: []Freeze{xmas},
			work: Work{Window: true, Override: "x"}, next: "2026-11-29T01:00:00Z", why: "outside"},
		{name: "work without a window", now: "2026-11-21T12:00:00Z", ok: true},
		{name: "work without a window, frozen", now: "2026-11-23T12:00:00Z", freezes: []Freeze{xmas},
			next: "2026-11-29T02:00:00Z", why: "frozen by xmas"},
		{name: "frozen without an end", now: "2026-11-22T01:00:00Z", freezes: []Freeze{lifted},
			work: firmware(0), why: "frozen by incident, until that is lifted"},
		{name: "somebody else's freeze", now: "2026-11-23T12:00:00Z",
			freezes: []Freeze{{Name: "x", For: Scope{Site, "gva1"}, From: 1}}, ok: true},
	} {
		w := sunday(t)
		if test.change != nil {
			test.change(&w)
		}
		book := NewBook(Agreed{Windows: []Window{w}, Freezes: test.freezes})
		v := book.Admit(acme, instant(t, test.now), test.work)
		next := ""
		if !v.Next.IsZero() {
			next = v.Next.Format(time.RFC3339)
		}
		if v.OK != test.ok || next != test.next || !strings.Contains(v.Why, test.why) || v.OK != (v.Why == "") {
			t.Errorf("%s: ok %v, next %q, why %q; want %v, %q, %q", test.name, v.OK, next, v.Why,
				test.ok, test.next, test.why)
		}
	}
}

// The next time that Admit returns is admitted, and not a moment before.
func TestNextIsTrue(t *testing.T) {
	t.Parallel()
	w := sunday(t)
	second := w
	second.Name, second.Times.Recurrences = "wednesday", []Recurrence{recurrence(t, "0 4 * * SUN,WED")}
	second.End = 6 * time.Hour
	book := NewBook(Agreed{Windows: []Window{w, second}, Freezes: []Freeze{{Name: "x", Zone: w.Zone,
		From: wall(t, "2026-12-06 02:30"), Until: wall(t, "2026-12-06 05:00")}}})
	at := instant(t, "2026-10-01T00:00:00Z")
	for range 2000 {
		at = at.Add(47 * time.Minute)
		for _, work := range []Work{firmware(0), firmware(time.Hour), firmware(3 * time.Hour)} {
			v := book.Admit(acme, at, work)
			if v.OK {
				continue
			}
			if v.Next.IsZero() || !v.Next.After(at) {
				t.Fatalf("%s, %s: next is %s", at, work.Estimate, v.Next)
			}
			if then := book.Admit(acme, v.Next, work); !then.OK {
				t.Fatalf("%s, %s: next is %s, but then: %s", at, work.Estimate, v.Next, then.Why)
			}
			if before := v.Next.Add(-time.Second); before.After(at) && book.Admit(acme, before, work).OK {
				t.Fatalf("%s, %s: next is %s, but it may start earlier", at, work.Estimate, v.Next)
			}
		}
	}
}

func TestOpeningsAreUnited(t *testing.T) {
	t.Parallel()
	night, touching, inside := sunday(t), sunday(t), sunday(t)
	touching.Name, touching.Times.Recurrences = "touching", []Recurrence{recurrence(t, "0 4 * * SUN")}
	touching.End, touching.Cutoff = 6*time.Hour, time.Hour
	inside.Name, inside.Times.Recurrences = "inside", []Recurrence{recurrence(t, "0 3 * * SUN")}
	inside.End = 3*time.Hour + 30*time.Minute
	book := NewBook(Agreed{Windows: []Window{night, touching, inside}})
	got := book.Openings(acme, instant(t, "2026-11-21T00:00:00Z"), firmware(0), 2)
	want := Opening{
		Start:   instant(t, "2026-11-22T01:00:00Z"),
		End:     instant(t, "2026-11-22T05:00:00Z"),
		Cutoff:  instant(t, "2026-11-22T04:00:00Z"),
		Windows: []string{"acme-sunday", "inside", "touching"},
	}
	if len(got) != 2 || !got[0].Start.Equal(want.Start) || !got[0].End.Equal(want.End) ||
		!got[0].Cutoff.Equal(want.Cutoff) || !slices.Equal(got[0].Windows, want.Windows) {
		t.Errorf("got %v, want first %v", got, want)
	}
}

func TestTheMostSpecialWindowHolds(t *testing.T) {
	t.Parallel()
	var all []Window
	for _, s := range []Scope{{Customer, "acme"}, {Site, "zrh1"}, {Group, "pair-1"}, {Host, "fw001"}} {
		w := sunday(t)
		w.Name, w.For = s.Level.String(), s
		all = append(all, w)
	}
	for n := len(all); n > 0; n-- {
		e := NewBook(Agreed{Windows: all[:n]}).Explain(acme)
		if len(e.Windows) != 1 || e.Windows[0].Name != all[n-1].Name || len(e.Hidden) != n-1 {
			t.Errorf("of %d windows: %v hold, %d are hidden", n, e.Windows, len(e.Hidden))
		}
	}
	// A place without a group is not in the group without a name.
	nameless := sunday(t)
	nameless.For = Scope{Group, ""}
	if got := NewBook(Agreed{Windows: []Window{nameless}}).Explain(Place{Host: "fw1"}); len(got.Windows) > 0 {
		t.Errorf("a window of the group without a name holds: %v", got.Windows)
	}
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	w := sunday(t)
	w.Approval = true
	from := instant(t, "2026-11-21T00:00:00Z")
	spanning := Approval{ID: "a1", Window: w.Name, Hash: w.Hash(), By: "carol",
		From: instant(t, "2026-11-22T01:00:00Z"), Until: instant(t, "2026-11-29T03:00:00Z")}
	single := Approval{ID: "a2", Window: w.Name, Hash: w.Hash(), Starts: []time.Time{
		instant(t, "2026-12-13T02:00:00+01:00")}}
	book := NewBook(Agreed{Windows: []Window{w}, Approvals: []Approval{spanning, single}})
	var got []string
	for o := range book.Occurrences(w.Name, from) {
		if len(got) == 5 {
			break
		}
		got = append(got, o.Approval)
	}
	if want := []string{"a1", "a1", "", "a2", ""}; !slices.Equal(got, want) {
		t.Errorf("approved by %q, want %q", got, want)
	}
	openings := book.Openings(acme, from, firmware(0), 9)
	if len(openings) != 3 {
		t.Errorf("%d openings, want 3", len(openings))
	}

	// The search looks at no occurrence before the first approval or after the last, but at all that
	// an approval covers.
	later := instant(t, "2026-12-13T02:00:00Z")
	for _, at := range []string{"2026-11-22T01:30:00Z", "2026-11-29T01:30:00Z", "2026-12-13T01:30:00Z"} {
		if v := book.Admit(acme, instant(t, at), firmware(0)); !v.OK {
			t.Errorf("%s: %s", at, v.Why)
		}
	}
	if v := book.Admit(acme, later.Add(time.Hour), firmware(0)); v.OK || !v.Next.IsZero() ||
		!strings.Contains(v.Why, "no approved window") {
		t.Errorf("behind the last approval: %+v", v)
	}

	changed := w
	changed.End += time.Minute
	book = NewBook(Agreed{Windows: []Window{changed}, Approvals: []Approval{spanning, single}})
	if v := book.Admit(acme, instant(t, "2026-11-22T01:30:00Z"), firmware(0)); v.OK {
		t.Error("a window that was changed after its approval is open")
	}
	if void := book.Void(); len(void) != 2 {
		t.Errorf("%d approvals are void, want 2", len(void))
	}
}

func BenchmarkAdmit(b *testing.B) {
	var all []Window
	for range 1000 {
		w := sunday(b)
		all = append(all, w)
		all[len(all)-1].For.Name = "c" + strings.Repeat("x", len(all)%40)
	}
	w := sunday(b)
	w.Approval = true
	a := Approval{Window: w.Name, Hash: w.Hash(), From: time.Unix(0, 0), Until: time.Unix(1<<40, 0)}
	book := NewBook(Agreed{Windows: append(all, w), Approvals: []Approval{a}})
	now := time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if !book.Admit(acme, now, firmware(time.Minute)).OK {
				b.Fatal("closed")
			}
		}
	})
	for name, start := range map[string]string{"hourly": "0 * * * *", "daily": "0 0 * * *"} {
		endless := sunday(b)
		endless.Times.Recurrences = []Recurrence{recurrence(b, start)}
		endless.End, endless.Length = 0, time.Hour
		if name == "daily" {
			endless.Length = 24 * time.Hour
		}
		book := NewBook(Agreed{Windows: []Window{endless}})
		b.Run("always open, "+name, func(b *testing.B) {
			for b.Loop() {
				if !book.Admit(acme, now, firmware(20*time.Minute)).OK {
					b.Fatal("closed")
				}
			}
		})
	}
	b.Run("closed", func(b *testing.B) {
		for b.Loop() {
			if book.Admit(acme, now.Add(10*time.Hour), firmware(time.Minute)).OK {
				b.Fatal("open")
			}
		}
	})
}

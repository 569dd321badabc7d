package scripts_test

import (
	"regexp"
	"strings"
	"testing"

	"muster/testkit/dnstest"
)

// refusals lists what runbooks refuse before they do anything; none of them changes a thing.
var refusals = []struct {
	args map[string]string
	code int
	say  string
}{
	{map[string]string{"zone": "other.lab", "key": "zsk"}, 3, `refused: (named|knotd) knows no zone other.lab`},
	{map[string]string{"key": "zsk", "tag": "1"}, 3, `refused: kid.lab has no active key 1 of this kind`},
	{map[string]string{"key": "ksk", "parents": "127.0.0.1#9"}, 4, `trouble: 127.0.0.1#9 does not answer`},
	{map[string]string{"key": "zsk", "secondaries": "127.0.0.1#9"}, 4, `trouble: 127.0.0.1#9 does not answer`},
	{map[string]string{"key": "zsk", "server": "auto"}, 3, `rndc and knotc are both installed`},
}

func refusesFirst(t *testing.T) {
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{})
		before := keysOf(t, l)
		for _, r := range refusals {
			newPlay(t, l, r.args).run("dnssec").wants("look", r.code, r.say)
		}
		p := newPlay(t, l, map[string]string{"key": "zsk", "min_age": "3600"}).run("dnssec")
		p.wants("look", 0, `has signed for \d+ s, less than 3600: nothing to do`)
		looks(t, l, args("key=ksk", "pending=attach"), 0,
			"no rollover of kid.lab is under way that could be followed: nothing to do")
		status(t, l, 0, "kid.lab validates everywhere; no rollover is under way")

		right := l.DS()
		l.Delegate(changed(right[0]))
		looks(t, l, args("key=zsk"), 4, "does not validate with the DS of the parent")
		status(t, l, 4, "does not validate|has a wrong DS")
		l.Delegate()
		looks(t, l, args("key=ksk"), 4, "the parent has no DS for kid.lab")
		l.Delegate(right...)

		if after := keysOf(t, l); after != before {
			t.Errorf("keys before:\n%s\nafter:\n%s", before, after)
		}
		l.Secondary.Stop()
		looks(t, l, args("key=zsk"), 4, "trouble: "+l.Secondary.At()+" does not answer")
		l.Primary.Stop()
		looks(t, l, args("key=zsk"), 4, "trouble: (named|knotd) does not answer")
		status(t, l, 4, "trouble: (named|knotd) does not answer")
	})
}

// keysOf gives the tags of the keys that the primary has.
func keysOf(t testing.TB, l *dnstest.Lab) string {
	t.Helper()
	text, err := l.Primary.Keys(dnstest.Zone)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(regexp.MustCompile(`key: \d+|\d+ [KZC]SK`).FindAllString(text, -1), ", ")
}

// changed is a DS with another digest.
func changed(ds string) string {
	digit := "0"
	if strings.HasSuffix(ds, "0") {
		digit = "1"
	}
	return ds[:len(ds)-1] + digit
}

func followsNeverDoubles(t *testing.T) {
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{})
		w := l.Watch(t)
		// The parent gets no DS, so the job gives up.
		p := newPlay(t, l, map[string]string{"key": "ksk", "ds_limit": "2"}).run("dnssec")
		p.wants("ds", -1, "waiting: the parent has no DS for the key")
		old, ds := p.values["saved.old"], p.values["saved.ds"]
		keys := keysOf(t, l)

		looks(t, l, args("key=ksk"), 3, "a rollover is under way already; pending=attach")
		looks(t, l, args("key=zsk"), 3, "another key of kid.lab is being rolled")
		looks(t, l, args("key=zsk", "pending=attach"), 3, "another key of kid.lab is being rolled")
		looks(t, l, args("key=ksk", "pending=attach", "tag=1"), 3, "the key that is being rolled is "+old+", not 1")
		status(t, l, 0, `a rollover is under way: .*KSK \d+ is (ready|old)`)

		// Both DS are there, then a wrong one: that is no time to go on.
		p = newPlay(t, l, map[string]string{"key": "ksk", "pending": "attach", "ds_limit": "2"})
		p.before = func(step string) {
			if step == "ds" {
				l.Delegate(append(l.DS(), ds)...)
			}
		}
		p.run("dnssec").wants("ds", -1, "the parent still has the DS of the old key "+old)
		right := l.DS()
		p.before = func(step string) {
			if step == "ds" {
				l.Delegate(append(right, changed(ds))...)
			}
		}
		p.run("dnssec").wants("ds", 4, "the parent has a wrong DS for the key")

		p = newPlay(t, l, args("key=ksk", "pending=attach", "whole=true", "tag="+old))
		p.before = func(step string) {
			if step == "ds" {
				l.Delegate(ds)
			}
		}
		p.run("dnssec").wants("prove", 0, "was rolled from the key "+old)
		unbroken(t, w)
		if now := keysOf(t, l); !strings.Contains(keys, p.values["saved.new"]) {
			t.Errorf("keys while it was pending: %s, at the end: %s", keys, now)
		}
		if now := l.DS(); len(now) != 1 || !strings.HasPrefix(now[0], ds[:20]) {
			t.Errorf("DS of the zone: %q, of the new key: %s", now, ds)
		}
		// A key that is scheduled a second time does not roll again.
		looks(t, l, args("key=ksk", "tag="+old), 3, "has no active key "+old)
		looks(t, l, args("key=ksk", "min_age=600"), 0, "nothing to do")
		looks(t, l, args("key=ksk", "pending=attach"), 0, "nothing to do")
	})
}

func believesNoYes(t *testing.T) {
	together(t, map[string]func(*testing.T){"Knot": func(t *testing.T) {
		p := newPlay(t, knot(t, dnstest.Options{}), map[string]string{"key": "zsk"})
		p.before = func(step string) {
			if step == "start" {
				p.tell("zone-key-rollover", dnstest.Zone, "ksk")
			}
		}
		p.run("dnssec").wants("start", 4,
			`(?s)^OK\n.*trouble: knot was told to roll the key \d+, but makes no new key; it said: OK`)
	}, "BIND": func(t *testing.T) {
		l := bind(t, dnstest.Options{})
		p := newPlay(t, l, map[string]string{"key": "zsk"})
		p.before = func(step string) {
			if step == "start" {
				p.values["saved.alg"] = "ED25519" // as if the key had been taken away meanwhile
			}
		}
		p.run("dnssec").wants("start", 4,
			`trouble: named does not roll the key \d+: Error executing rollover command: no matching key found`)

		// Somebody else was faster: that rollover is followed.
		p = newPlay(t, l, map[string]string{"key": "zsk"})
		p.before = func(step string) {
			if step == "start" {
				p.tell("dnssec", "-rollover", "-key", p.values["saved.old"], dnstest.Zone)
				l.Secondary.Stop()
			}
			if step == "published" {
				p.values["saved.publish_limit"] = "8"
			}
		}
		p.run("dnssec").wants("published", -1, "waiting: "+l.Secondary.At()+" does not answer")
		if n := strings.Count(keysOf(t, l), "key: "); n != 3 {
			t.Errorf("%d keys: %s", n, keysOf(t, l))
		}
	}})
}

// looks plays the runbook, which must end in its first step, with that exit code and
// saying that.
func looks(t *testing.T, l *dnstest.Lab, with map[string]string, code int, say string) {
	t.Helper()
	newPlay(t, l, with).run("dnssec").wants("look", code, say)
}

// status plays the view of the zone in the same way.
func status(t *testing.T, l *dnstest.Lab, code int, say string) {
	t.Helper()
	newPlay(t, l, nil).run("dnssec-status").wants("status", code, say)
}

// args makes a map of words like key=zsk.
func args(words ...string) map[string]string {
	all := map[string]string{}
	for _, w := range words {
		name, v, _ := strings.Cut(w, "=")
		all[name] = v
	}
	return all
}

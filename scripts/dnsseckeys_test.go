package scripts_test

import (
	"fmt"
	"strings"
	"testing"

	"muster/testkit/dnstest"
)

func rollsCSK(t *testing.T) {
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{Keys: "csk lifetime unlimited algorithm 13;", CSK: true})
		newPlay(t, l, map[string]string{"key": "zsk"}).run("dnssec").wants("look", 3, "one key signs all")
		w := l.Watch(t)
		p := newPlay(t, l, args("key=ksk", "whole=true"))
		p.before = func(step string) {
			if step == "ds" {
				l.Delegate(p.values["saved.ds"])
			}
		}
		p.run("dnssec").wants("prove", 0, "was rolled from the key "+p.values["saved.old"])
		unbroken(t, w)
		if p.values["server"] == "knot" { // it removes the old key when it hears of the DS
			p.wantsSpread()
		}
	})
}

func rollsOneOfTwo(t *testing.T) {
	l := bind(t, dnstest.Options{Keys: "ksk lifetime unlimited algorithm 13; " +
		"ksk lifetime unlimited algorithm 14; zsk lifetime unlimited algorithm 13; zsk lifetime unlimited algorithm 14;"})
	p := newPlay(t, l, map[string]string{"key": "ksk"}).run("dnssec")
	p.wants("look", 3, "more than one key of this kind is active: say which with tag=TAG")

	both := l.DS()
	tag, stays := strings.Fields(both[0])[3], both[1]
	w := l.Watch(t)
	p = newPlay(t, l, map[string]string{"key": "ksk", "tag": tag})
	p.before = func(step string) {
		if step == "ds" {
			l.Delegate(p.values["saved.ds"], stays)
		}
	}
	p.run("dnssec").wants("prove", 0, "was rolled from the key "+tag+" to ")
	unbroken(t, w)
	if now := strings.Join(l.DS(), "\n"); !strings.Contains(now, stays) || strings.Contains(now, " "+tag+" ") {
		t.Errorf("%s was to be rolled, %s to stay: %s", tag, stays, now)
	}
}

func waitsForSecondaries(t *testing.T) {
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{})
		p := newPlay(t, l, map[string]string{"key": "zsk"})
		p.before = func(step string) {
			if step == "published" {
				p.values["saved.publish_limit"] = "10"
			}
			if step == "start" {
				sep := " port "
				if l.Primary.Control == "" {
					sep = "@"
				}
				l.Secondary.Reconfigure(fmt.Sprint("127.0.0.1", sep, l.Primary.Port), "127.0.0.1"+sep+"9")
			}
		}
		p.run("dnssec")
		if p.ended == "start" { // it was behind by then
			p.wants("start", 4, "trouble: the secondary "+l.Secondary.At()+" is behind: it has serial")
			return
		}
		p.wants("published", -1, "waiting: the secondary "+l.Secondary.At()+" is behind: it has serial")
	})
}

package scripts_test

import (
	"sync"
	"testing"

	"muster/testkit/dnstest"
)

// TestKeysOfRealServersAreRolled is one test of many, because most of each is waiting
// for the timings of servers: more of them run at once than tests do.
func TestKeysOfRealServersAreRolled(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a dozen rollovers on real servers")
	}
	t.Parallel()
	together(t, map[string]func(*testing.T){
		"a ZSK while the zone stays secure":                     rollsZSK,
		"a key that does both as a KSK":                         rollsCSK,
		"one of two KSKs, if it is named":                       rollsOneOfTwo,
		"not if something is wrong before":                      refusesFirst,
		"a KSK, not twice, and to the end what nobody finished": followsNeverDoubles,
		"not because a server says yes":                         believesNoYes,
		"not past a secondary that is behind":                   waitsForSecondaries,
		"with servers that nobody named, found in the DNS":      findsServers,
	})
}

// starter starts a lab.
type starter = func(testing.TB, dnstest.Options) *dnstest.Lab

// room is for so many labs at once: with more, a machine of two cores would be too slow
// for timings of seconds.
var room = make(chan struct{}, 6)

// onEach runs a test on each of the servers that sign, at the same time.
func onEach(t *testing.T, test func(*testing.T, starter)) {
	together(t, map[string]func(*testing.T){
		"BIND": func(t *testing.T) { test(t, bind) },
		"Knot": func(t *testing.T) { test(t, knot) },
	})
}

func bind(t testing.TB, o dnstest.Options) *dnstest.Lab { return waitsFor(t, o, dnstest.StartBIND) }
func knot(t testing.TB, o dnstest.Options) *dnstest.Lab { return waitsFor(t, o, dnstest.StartKnot) }

// waitsFor starts a lab when there is room for it.
func waitsFor(t testing.TB, o dnstest.Options, start starter) *dnstest.Lab {
	room <- struct{}{}
	t.Cleanup(func() { <-room })
	return start(t, o)
}

// together runs subtests at once, however few tests -parallel allows.
func together(t *testing.T, tests map[string]func(*testing.T)) {
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}

func rollsZSK(t *testing.T) {
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{})
		w := l.Watch(t)
		p := newPlay(t, l, map[string]string{"key": "zsk"}).run("dnssec")
		p.wants("prove", 0, "was rolled from the key "+p.values["saved.old"]+" to "+p.values["saved.new"])
		unbroken(t, w)
		p.wantsTimeline()
	})
}

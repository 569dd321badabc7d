package scripts_test

import (
	"strings"
	"sync"
	"testing"

	"muster/internal/dnstest"
)

type starter = func(testing.TB, dnstest.Options) *dnstest.Lab

// onEach runs a test on each of the servers that sign, at the same time: most of
// it is waiting for their timings.
func onEach(t *testing.T, test func(*testing.T, starter)) {
	together(t, map[string]func(*testing.T){
		"BIND": func(t *testing.T) { test(t, dnstest.StartBIND) },
		"Knot": func(t *testing.T) { test(t, dnstest.StartKnot) },
	})
}

// together runs subtests at once, however few tests -parallel allows.
func together(t *testing.T, tests map[string]func(*testing.T)) {
	var all sync.WaitGroup
	for name, test := range tests {
		all.Go(func() { t.Run(name, test) })
	}
	all.Wait()
}

func TestAZSKIsRolledWhileTheZoneStaysSecure(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{})
		w := l.Watch(t)
		p := newPlay(t, l, map[string]string{"key": "zsk"}).run("dnssec")
		p.wants("prove", 0, "was rolled from the key "+p.values["saved.old"]+" to "+p.values["saved.new"])
		unbroken(t, w)
		p.wantsTimeline()
	})
}

func TestAKSKIsRolledWhileTheZoneStaysSecure(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, start starter) {
		l := start(t, dnstest.Options{})
		w := l.Watch(t)
		p := newPlay(t, l, map[string]string{"key": "ksk"})
		p.before = func(step string) {
			if step == "ds-gate" {
				l.Delegate(p.values["saved.ds"])
			}
		}
		p.run("dnssec")
		p.wants("prove", 0, "was rolled from the key "+p.values["saved.old"]+" to "+p.values["saved.new"])
		unbroken(t, w)
		if ds := l.DS(); len(ds) != 1 || !strings.HasPrefix(ds[0], p.values["saved.ds"][:20]) {
			t.Errorf("DS of the zone: %q, of the new key: %s", ds, p.values["saved.ds"])
		}
	})
}

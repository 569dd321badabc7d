package dnstest

import (
	"errors"
	"strings"
	"testing"
)

func TestALabIsSecureFromTheParentDown(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, Options) *Lab{
		"BIND": StartBIND, "Knot": StartKnot,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := start(t, Options{})
			w := l.Watch(t)
			if ds := l.DS(); len(ds) != 1 {
				t.Errorf("%d keys for which a DS is: %q", len(ds), ds)
			}
			keys, err := l.Primary.Keys(Zone)
			if err != nil || strings.Count(keys, "SK") != 2 {
				t.Errorf("keys: %s (%v)", keys, err)
			}
			if _, broken := w.End(); len(broken) > 0 {
				t.Errorf("seen while nothing happened: %q", broken)
			}

			// The watcher sees what it is there for.
			l.Delegate(strings.Replace(l.DS()[0], " 13 2 ", " 13 2 AB", 1)[:len(l.DS()[0])])
			w = l.Watch(t)
			until(t, "a wrong DS shows", func() error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.seen[Bogus] == 0 {
					return errNotYet
				}
				return nil
			})
		})
	}
}

var errNotYet = errors.New("not yet")

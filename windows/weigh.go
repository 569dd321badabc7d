package windows

import (
	"fmt"
	"slices"
	"strings"
)

// scopeMax bounds how many windows, freezes and events are agreed for one scope: each worker
// reads all of them before it begins anything there, 1,000 in about 3 ms.
const scopeMax = 2000

// weigh refuses what would cost all workers of a scope too much.
func (r *reader) weigh() {
	type weight struct {
		n  int
		of []string // what makes it up
	}
	all := map[Scope]*weight{}
	add := func(s Scope, of string, events int) {
		if all[s] == nil {
			all[s] = &weight{}
		}
		all[s].n += max(events, 1)
		all[s].of = append(all[s].of, of)
	}
	for _, w := range r.agreed.Windows {
		add(w.For, "window "+w.Name, len(w.Times.Events))
	}
	for _, f := range r.agreed.Freezes {
		add(f.For, "freeze "+f.Name, len(f.Events))
	}
	for s, w := range all {
		if w.n <= scopeMax {
			continue
		}
		slices.Sort(w.of)
		at := r.names[strings.Replace(w.of[0], " ", "", 1)]
		r.errs = append(r.errs, fmt.Errorf("%s: %d windows, freezes and events of calendars for %s "+
			"(%s): at most %d, because each worker reads them before it begins a job there; leave out "+
			"events that are over, or write one that comes again for many that do not", at, w.n, s,
			clip(strings.Join(w.of, ", ")), scopeMax))
	}
}

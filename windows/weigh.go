package windows

import (
	"fmt"
	"slices"
	"strings"
)

// scopeMax bounds the windows, freezes and events for one scope, because each worker reads all of
// them before it begins work there: 1,000 take about 3 ms.
const scopeMax = 2000

// weigh refuses files that would cost all workers of a scope too much time. It counts their
// entries together with those that stay in force.
func (r *reader) weigh(stays Agreed) {
	type weight struct {
		n, stay int
		of      []string // the entries of the files that add to it
	}
	all := map[Scope]*weight{}
	add := func(s Scope, of string, events int) {
		if all[s] == nil {
			all[s] = &weight{}
		}
		all[s].n += max(events, 1)
		all[s].of = append(all[s].of, of)
	}
	stay := func(s Scope, events int) {
		if all[s] != nil { // entries that the files do not touch are not theirs to correct
			all[s].n += max(events, 1)
			all[s].stay += max(events, 1)
		}
	}
	for _, w := range r.agreed.Windows {
		add(w.For, "window "+w.Name, len(w.Times.Events))
	}
	for _, f := range r.agreed.Freezes {
		add(f.For, "freeze "+f.Name, len(f.Events))
	}
	for _, w := range stays.Windows {
		stay(w.For, len(w.Times.Events))
	}
	for _, f := range stays.Freezes {
		stay(f.For, len(f.Events))
	}
	for s, w := range all {
		if w.n <= scopeMax {
			continue
		}
		slices.Sort(w.of)
		at := r.names[strings.Replace(w.of[0], " ", "", 1)]
		more := ""
		if w.stay > 0 {
			more = fmt.Sprintf(", %d of them in force already and not in the files", w.stay)
		}
		r.errs = append(r.errs, fmt.Errorf("%s: %d windows, freezes and events of calendars for %s "+
			"(%s%s): at most %d, because each worker reads them before it begins a job there; leave out "+
			"events that are over, or replace many single ones by one that repeats", at, w.n, s,
			clip(strings.Join(w.of, ", ")), more, scopeMax))
	}
}

package schedules

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"muster/jobs/queue/hub"
	"muster/server/web"
	"muster/windows"
)

// A sorting has the schedules in force that an apply replaces, removes and leaves.
type sorting struct {
	remove []hub.Schedule
	left   []string       // of the owners of the entries, and not among them: they stay
	stay   map[string]int // how many schedules of an owner do that are not among the entries
	basis  string
	wrong  []error
}

// sortOut compares the entries of files with the schedules in force.
func sortOut(there []hub.Schedule, entries []windows.Entry, p windows.Pruning) sorting {
	s := sorting{stay: map[string]int{}}
	named, owners := map[string]windows.Entry{}, map[string]bool{}
	for _, e := range entries {
		named[e.Name], owners[e.Owner] = e, true
	}
	var basis []string
	for _, old := range there {
		e, its := named[old.Name]
		pruned := p.Of(old.Owner, owners)
		if its || pruned || owners[old.Owner] {
			basis = append(basis, fmt.Sprintf("%s %d", old.Name, old.Version))
		}
		switch {
		case its && e.Owner != old.Owner && !pruned && old.Owner != "":
			s.wrong = append(s.wrong, web.Mistake("body.files",
				"schedule %s is there already, and belongs to "+
					"customer %s: names are unique", old.Name, old.Owner))
		case its:
		case pruned:
			s.remove = append(s.remove, old)
		case owners[old.Owner]:
			s.left = append(s.left, old.Name)
			s.stay[old.Owner]++
		}
	}
	slices.Sort(basis)
	sum := sha256.Sum256([]byte(strings.Join(basis, "\n")))
	s.basis = hex.EncodeToString(sum[:8])
	return s
}

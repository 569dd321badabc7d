package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"muster/api"
	"muster/jobs/queue/hub"
	"muster/windows"
)

// meets is an error if something else is in force.
func meets(e api.Expected, what, basis string, version int64) error {
	if e.Version != 0 && e.Version != version {
		return huma.Error409Conflict(fmt.Sprintf("version %d is in force, and you expect %d: nothing "+
			"was changed; look with --check what would change now", version, e.Version))
	}
	if e.Basis != "" && e.Basis != basis {
		return huma.Error409Conflict("somebody else has just changed " + what + " that these files are " +
			"about: nothing was changed; look with --check what would change now, and apply again")
	}
	return nil
}

// A sorting is what applying entries does to the schedules that are there.
type sorting struct {
	remove []hub.Schedule
	left   []string       // of the owners of the entries, and not among them: they stay
	stay   map[string]int // how many schedules of an owner do that are not among the entries
	basis  string
	wrong  []error
}

// sortOut holds the entries of files against the schedules that are there.
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
			s.wrong = append(s.wrong, mistake("body.files", "schedule %s is there already, and belongs to "+
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

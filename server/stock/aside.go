package stock

import (
	"maps"
	"slices"

	"muster/fleet"
	"muster/jobs"
	"muster/jobs/quarantine"
)

// aside has the hosts in quarantine, and the scene without them.
type aside struct {
	marks   map[string]quarantine.Mark
	drained map[string]jobs.Drain
	bare    func() *Stock
}

func (l *Looker) setAside(st *Stock, drained map[string]jobs.Drain,
	marks map[string]quarantine.Mark) *aside {
	if len(marks) == 0 {
		return nil
	}
	return &aside{marks, drained, func() *Stock { return l.withDrains(st, drained) }}
}

// join lets selections leave out hosts in quarantine as they leave out drained ones, and returns
// all of them.
func (v *Scene) join() map[string]jobs.Drain {
	if v.aside == nil {
		return v.Drained
	}
	v.Drained = maps.Clone(v.aside.drained)
	if v.Drained == nil {
		v.Drained = map[string]jobs.Drain{}
	}
	for host, m := range v.aside.marks {
		d, drained := v.Drained[host]
		if !drained {
			d = jobs.Drain{Note: m.Note(), At: jobs.TimeOf(jobs.Micros(m.Since))}
		} else {
			d.Note += "; " + m.Note()
		}
		d.Only = string(quarantine.Check)
		v.Drained[host] = d
	}
	return v.Drained
}

// ForCheck returns the scene for work that changes nothing: hosts in quarantine take it.
func (v Scene) ForCheck() Scene {
	if v.aside != nil {
		v.Stock, v.Drained, v.picks = v.aside.bare(), v.aside.drained, nil
	}
	return v
}

// Quarantined returns the hosts of the fleet in quarantine, of those that the caller sees.
func (v Scene) Quarantined() map[string]quarantine.Mark {
	out := map[string]quarantine.Mark{}
	if v.aside == nil || v.Stock == nil {
		return out
	}
	for host, m := range v.aside.marks {
		if _, seen := v.Host(host); seen {
			out[host] = m
		}
	}
	return out
}

// WhyAside says of the hosts of a list that are in quarantine why, folded where that is the same.
func (v Scene) WhyAside(names []string) (lines []string) {
	if v.aside == nil {
		return nil
	}
	alike := map[string][]string{}
	for _, name := range names {
		if m, in := v.aside.marks[name]; in {
			alike[m.Note()] = append(alike[m.Note()], name)
		}
	}
	for _, note := range slices.Sorted(maps.Keys(alike)) {
		lines = append(lines, fleet.Fold(alike[note])+": "+note+"; "+quarantine.How)
	}
	return lines
}

// Aside returns the names of those hosts of a list that are in quarantine.
func (v Scene) Aside(hosts []fleet.Host) (names []string) {
	for _, h := range hosts {
		if v.aside == nil {
			return nil
		}
		if _, in := v.aside.marks[h.Name]; in {
			names = append(names, h.Name)
		}
	}
	return names
}

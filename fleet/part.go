package fleet

import "slices"

// Entry is a host as a source describes it, with its position there.
type Entry struct {
	Host       Host
	KnownHosts string // file in which its keys are looked up; empty if the host has some
	File       string
	Line       int
	Jump       []string // names of jump hosts: hosts, or Hops of the part
	JumpLine   int      // line that names them
}

// Part is the content of one source of an inventory. Read creates it from files in the
// format of this package; readers of other formats fill it themselves.
type Part struct {
	Files    []string // in the order in which messages are sorted
	Entries  []Entry
	Hops     []Hop // jump hosts that are not hosts of the inventory
	Mistakes Mistakes
	Warnings Mistakes // valid by the rules of the format, but probably a mistake
	Notes    Mistakes // what was ignored

	own *reader // the result of Read
}

// Join combines several parts into one inventory. Only one part may define a host;
// other parts change it under overrides. The error is of type Mistakes and has the
// mistakes of all parts.
func Join(parts ...Part) (*Inventory, error) {
	s := Look(parts...)
	if len(s.Mistakes) > 0 {
		return nil, s.Mistakes
	}
	return s.Inventory, nil
}

// Survey is an inventory together with all its mistakes.
type Survey struct {
	Inventory *Inventory // with mistakes in it: only to look at, never to use
	Mistakes  Mistakes
	Files     []string // in the order of the parts
}

// Look is Join for callers who want to see the inventory even if it has mistakes.
func Look(parts ...Part) Survey {
	var r reader
	var files []string
	for _, p := range parts {
		files = append(files, p.Files...)
		if p.own != nil {
			r.entries = append(r.entries, p.own.entries...)
			r.limits = append(r.limits, p.own.limits...)
			r.changes = append(r.changes, p.own.changes...)
		}
		for _, e := range p.Entries {
			r.check(entry{host: e.Host, knownHosts: e.KnownHosts, file: e.File, line: e.Line,
				jump: e.Jump, jumpLine: e.JumpLine})
		}
		r.strangers = append(r.strangers, p.Hops...)
		r.mistakes = append(r.mistakes, p.Mistakes...)
		r.warnings = append(r.warnings, p.Warnings...)
		r.notes = append(r.notes, p.Notes...)
	}
	inv := r.inventory(files)
	return Survey{inv, r.mistakes, files}
}

// Wrong returns the mistakes of a part that show without the other parts.
func (p Part) Wrong() Mistakes {
	var r reader
	for _, e := range p.Entries {
		r.check(entry{host: e.Host, file: e.File, line: e.Line})
	}
	all := slices.Concat(p.Mistakes, r.mistakes)
	all.Sort(p.Files)
	return all
}

// check adds a host that another format described, and reports its mistakes.
func (r *reader) check(e entry) {
	for _, err := range checkHost(&e.host) {
		r.mistakeAt(e, "%s: %v", e.who(), err)
	}
	for _, key := range sortedKeys(e.host.Labels) {
		for _, err := range r.checkLabel(key, e.host.Labels[key]) {
			r.mistakeAt(e, "%s: %v", e.who(), err)
		}
	}
	r.entries = append(r.entries, e)
}

package fleet

import "slices"

// Entry is a host as a source has it, and where it stands.
type Entry struct {
	Host       Host
	KnownHosts string // file in which its keys are looked up; empty if the host has some
	File       string
	Line       int
	Jump       []string // names of hosts on the way to it, or of Hops of the part
	JumpLine   int      // where they stand
}

// Part is what one source of an inventory says. Read makes it of files in the
// format of this package; who reads another format makes it from its hosts.
type Part struct {
	Files    []string // the order of messages
	Entries  []Entry
	Hops     []Hop // jump hosts that are no hosts of the inventory
	Mistakes Mistakes
	Warnings Mistakes // what looks like a mistake, and is none by the rules of the format
	Notes    Mistakes // what was not taken over

	own *reader // what Read has read
}

// Join makes one inventory of several parts. A host may stand in one of them only;
// what another says of it stands there under overrides. The error is of type
// Mistakes and has those of all parts.
func Join(parts ...Part) (*Inventory, error) {
	s := Look(parts...)
	if len(s.Mistakes) > 0 {
		return nil, s.Mistakes
	}
	return s.Inventory, nil
}

// Survey is all that there is to be said of an inventory, also of one with mistakes.
type Survey struct {
	Inventory *Inventory // with mistakes in it: to be looked at, not to be used
	Mistakes  Mistakes
	Files     []string // in their order
}

// Look is Join for those who want to see everything at once.
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

// Wrong is what is wrong with a part by itself, whatever the others say.
func (p Part) Wrong() Mistakes {
	var r reader
	for _, e := range p.Entries {
		r.check(entry{host: e.Host, file: e.File, line: e.Line})
	}
	all := slices.Concat(p.Mistakes, r.mistakes)
	all.Sort(p.Files)
	return all
}

// check takes in a host that came from elsewhere, with what is wrong with it.
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

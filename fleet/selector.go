package fleet

import (
	"fmt"
	"slices"
	"strings"

	"muster/internal/wording"
)

// Selector picks hosts of an inventory; ParseSelector makes it. The zero
// Selector picks none, which is an error.
type Selector struct {
	text  string
	terms []term
	found map[Earlier][]string // hosts of earlier tasks, once they were resolved
}

// term is an operand and how it joins what stands before it: ',' adds hosts,
// '!' takes hosts away, '&' keeps only those that are in both, '^' those that are
// in one of the two only.
type term struct {
	join byte
	what operand
}

// operand means some hosts.
type operand interface {
	// mark adds these hosts to a set. Names that no host has are noted in the search.
	mark(s *search, into hostSet) error
	// cost is how often mark looks at every host.
	cost() int
}

// search is one answer of an inventory to a selector.
type search struct {
	inventory *Inventory
	earlier   map[Earlier][]string
	lost      lostNames
	gone      []string // of earlier tasks, in the inventory no more
}

// String returns the selector as it was written.
func (s Selector) String() string { return s.text }

// Mentions tells whether a label term of the selector is about this label.
func (s Selector) Mentions(label string) bool {
	return slices.ContainsFunc(flat(s.terms), func(o operand) bool {
		terms, ok := o.(labelTerms)
		return ok && terms.mention(label)
	})
}

// flat lists the operands of terms, those in groups too.
func flat(terms []term) []operand {
	var list []operand
	for _, t := range terms {
		if g, ok := t.what.(group); ok {
			list = append(list, flat(g)...)
			continue
		}
		list = append(list, t.what)
	}
	return list
}

// Select returns the hosts that the selector picks, sorted by name, drained or
// not. That it picks none is an error, and so is a name that no host has; the
// error tells what comes nearest.
func (v *Inventory) Select(sel Selector) ([]Host, error) {
	chosen, _, err := v.choose(sel)
	if err != nil {
		return nil, err
	}
	return v.hostsIn(chosen), nil
}

// Drained is the label of hosts that are to be left alone. A selector picks them
// only if it mentions it: role=fw leaves them out, {drained} means them.
const Drained = "drained"

// Picked is what a selector comes to when work is to be given out.
type Picked struct {
	Hosts   []Host   // sorted by name; at least one
	Drained []string // names of hosts that were left out because they are drained
	Gone    []string // hosts of earlier tasks that are in the inventory no more
}

// Pick is Select for work: it leaves out what is drained, unless the selector
// mentions that label.
func (v *Inventory) Pick(sel Selector) (Picked, error) {
	chosen, s, err := v.choose(sel)
	if err != nil {
		return Picked{}, err
	}
	p := Picked{Gone: s.gone}
	if drained := v.labelIndex().having(Drained); drained != nil && !sel.Mentions(Drained) {
		out := slices.Clone(chosen)
		out.and(drained)
		chosen.less(drained)
		for i := range out.all() {
			p.Drained = append(p.Drained, v.hosts[i].Name)
		}
	}
	if chosen.len() == 0 {
		return Picked{}, fmt.Errorf("selector %q picks no host but drained ones, %s: undrain them, or "+
			"mention it, as in {drained}&%s", excerpt(sel.text, 0),
			wording.ClipList(Fold(p.Drained)), p.Drained[0])
	}
	p.Hosts = v.hostsIn(chosen)
	return p, nil
}

// choose finds the hosts of a selector, at least one.
func (v *Inventory) choose(sel Selector) (hostSet, *search, error) {
	s := &search{inventory: v, earlier: sel.found}
	chosen, err := s.join(sel.terms)
	switch {
	case err != nil:
	case s.lost.count > 0:
		err = s.lost.error(v)
	case chosen.len() == 0:
		return nil, nil, fmt.Errorf("selector %q picks no host: %s", excerpt(sel.text, 0),
			explainEmpty(s, sel))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("selector %q: %w", excerpt(sel.text, 0), err)
	}
	return chosen, s, nil
}

// join carries out the operators, from left to right.
func (s *search) join(terms []term) (hostSet, error) {
	chosen := newHostSet(len(s.inventory.hosts))
	var these hostSet
	for _, t := range terms {
		if t.join == ',' {
			if err := t.what.mark(s, chosen); err != nil {
				return nil, err
			}
			continue
		}
		if these == nil {
			these = newHostSet(len(s.inventory.hosts))
		}
		clear(these)
		if err := t.what.mark(s, these); err != nil {
			return nil, err
		}
		switch t.join {
		case '!':
			chosen.less(these)
		case '&':
			chosen.and(these)
		case '^':
			chosen.xor(these)
		}
	}
	return chosen, nil
}

func (v *Inventory) hostsIn(chosen hostSet) []Host {
	hosts := make([]Host, 0, chosen.len())
	for i := range chosen.all() {
		hosts = append(hosts, v.hosts[i])
	}
	return hosts
}

// group is a selector in parentheses.
type group []term

func (g group) mark(s *search, into hostSet) error {
	these, err := s.join(g)
	if err == nil {
		into.or(these)
	}
	return err
}

func (g group) cost() int { return 1 + termsCost(g) }

// LostError is about names in a selector that no host has.
type LostError struct {
	Lost  []Lost // each once, the first thousands of them
	words string
}

// Error names some of them, and what comes nearest to these.
func (e *LostError) Error() string { return e.words }

// Lost is a name that no host has.
type Lost struct {
	Name    string   `json:"name"`
	Nearest []string `json:"nearest,omitempty"` // what may have been meant, as parts of a selector
}

// NamesHost tells whether a selector has a name in it, or in a range.
func (sel Selector) NamesHost(name string) bool {
	for _, o := range flat(sel.terms) {
		switch o := o.(type) {
		case plainName:
			if string(o) == name {
				return true
			}
		case ansibleGroup:
			if string(o) == name {
				return true
			}
		case pattern:
			found := false
			o.each(func(one []byte) { found = found || string(one) == name })
			if found {
				return true
			}
		}
	}
	return false
}

// lostNames are the names in a selector that no host has.
type lostNames struct {
	first []string // some of them, each once
	many  []string // more of them, for hints; one may be there twice
	count int
}

// lostMany bounds how many lost names are remembered.
const lostMany = 4096

func (l *lostNames) add(name string) {
	if slices.Contains(l.first, name) {
		return
	}
	l.count++
	if len(l.many) < lostMany {
		l.many = append(l.many, name)
	}
	if len(l.first) < 5 {
		l.first = append(l.first, name)
	}
}

// hintsMax bounds what a message offers instead of lost names.
const hintsMax = 5

// nearestMax is for how many lost names it is told what comes nearest: every name of the
// inventory is looked at for each.
const nearestMax = 100

func (l *lostNames) error(v *Inventory) error {
	e := &LostError{words: l.explain(v)}
	seen := map[string]bool{}
	for _, name := range l.many {
		if seen[name] {
			continue
		}
		seen[name] = true
		one := Lost{Name: name}
		if len(e.Lost) < nearestMax {
			if one.Nearest, _ = v.labelIndex().otherwisePadded([]string{name}); one.Nearest == nil {
				one.Nearest = v.labelIndex().hintsFor(name)
			}
		}
		e.Lost = append(e.Lost, one)
	}
	return e
}

// explain names the first of them, how many more there are, and what comes
// nearest.
func (l *lostNames) explain(v *Inventory) string {
	text := strings.Join(l.first, ", ")
	if more := l.count - len(l.first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if l.count == 1 {
		text += " is not in the inventory"
	} else {
		text = fmt.Sprintf("%d names are not in the inventory: %s", l.count, text)
	}
	facts := v.labelIndex()
	var hints []string
	padded, rest := facts.otherwisePadded(l.many)
	if len(padded) > 0 {
		hints = append(hints, wording.ClipList(Fold(padded)))
	}
	for _, name := range l.first {
		if !slices.Contains(rest, name) {
			continue // its host was found
		}
		for _, h := range facts.hintsFor(name) {
			if !slices.Contains(hints, h) && len(hints) < hintsMax {
				hints = append(hints, h)
			}
		}
	}
	if len(hints) == 0 {
		return text + "; there are " + wording.ClipList(Fold(facts.names))
	}
	return text + "; nearest: " + strings.Join(hints, ", ")
}

package fleet

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"muster/internal/wording"
)

// Selector picks hosts of an inventory; ParseSelector creates it. The zero
// Selector picks none, which is an error.
type Selector struct {
	text  string
	terms []term
	found map[Earlier][]string // hosts of earlier tasks; set by Resolve
}

// term is an operand and the operator before it: ',' adds hosts, '!' removes hosts,
// '&' keeps hosts that are in both sets, and '^' keeps hosts that are in exactly one of
// the two.
type term struct {
	join byte
	what operand
}

// operand is an expression that stands for some hosts.
type operand interface {
	// mark adds these hosts to a set. It records in the search the names that no host has.
	mark(s *search, into hostSet) error
	// cost returns how often mark looks at every host.
	cost() int
}

// search is the state while an inventory evaluates a selector.
type search struct {
	inventory *Inventory
	earlier   map[Earlier][]string
	lost      lostNames
	gone      []string // hosts of earlier tasks that left the inventory
}

// String returns the selector as its author wrote it.
func (s Selector) String() string { return s.text }

// Mentions reports whether a label term of the selector names this label.
func (s Selector) Mentions(label string) bool {
	return slices.ContainsFunc(flat(s.terms), func(o operand) bool {
		terms, ok := o.(labelTerms)
		return ok && terms.mention(label)
	})
}

// flat returns the operands of terms, including those in parentheses.
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

// Select returns the hosts that the selector picks, sorted by name, including drained ones.
// It returns an error if the selector picks none or has a name that no host has; the
// error suggests similar names.
func (v *Inventory) Select(sel Selector) ([]Host, error) {
	chosen, _, err := v.choose(sel)
	if err != nil {
		return nil, err
	}
	return v.hostsIn(chosen), nil
}

// Known is Select for rules that outlive hosts: it yields the indexes in Hosts of those that the
// selector picks, also if it picks none, and returns the names that no host has.
func (v *Inventory) Known(sel Selector) (picked iter.Seq[int], lost []string, err error) {
	s := &search{inventory: v, earlier: sel.found}
	chosen, err := s.join(sel.terms)
	return chosen.all(), s.lost.many, err
}

// Drained is the label of hosts that get no work. Pick includes them only if the selector
// mentions the label: role=fw leaves them out, {drained} picks them.
const Drained = "drained"

// Picked is the result of a selector that picks hosts for work.
type Picked struct {
	Hosts   []Host   // sorted by name; at least one
	Drained []string // names of hosts that were left out because they are drained
	Gone    []string // hosts of earlier tasks that left the inventory
}

// Pick is Select for work: it leaves out drained hosts, unless the selector
// mentions their label.
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

// choose returns the hosts of a selector, at least one.
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

// join applies the operators, from left to right.
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

// LostError says that a selector has names that no host has.
type LostError struct {
	Lost  []Lost // each once, at most lostMany
	words string
}

// Error names some of the lost names, and similar ones that exist.
func (e *LostError) Error() string { return e.words }

// Lost is a name that no host has.
type Lost struct {
	Name    string   `json:"name"`
	Nearest []string `json:"nearest,omitempty"` // similar parts of a selector that would be valid
}

// NamesHost reports whether a selector contains a name, literally or in a range.
func (sel Selector) NamesHost(name string) bool {
	found := false
	for _, o := range flat(sel.terms) {
		switch o := o.(type) {
		case plainName, ansibleGroup:
			found = found || fmt.Sprint(o) == name
		case pattern:
			o.each(func(one []byte) { found = found || string(one) == name })
		}
	}
	return found
}

// lostNames collects the names in a selector that no host has.
type lostNames struct {
	first []string // some of them, each once
	many  []string // more of them, for hints; may have duplicates
	count int
}

// lostMany bounds how many lost names are kept.
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

// hintsMax bounds the suggestions in one message.
const hintsMax = 5

// nearestMax bounds the lost names that get suggestions, because each requires a pass over
// all names of the inventory.
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

// explain names the first lost names, the count of the others, and similar names that
// exist.
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
			continue // otherwisePadded found its host
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

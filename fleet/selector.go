package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Selector picks hosts of an inventory; ParseSelector makes it. The zero
// Selector picks none, which is an error.
type Selector struct {
	text  string
	terms []term
}

// term is an operand and how it joins what stands before it: ',' adds hosts,
// '!' takes hosts away, '&' keeps only those that are in both.
type term struct {
	join byte
	what operand
}

// operand means some hosts.
type operand interface {
	// find returns the places of these hosts in the inventory. Names that no
	// host has are noted in lost.
	find(v *Inventory, lost *lostNames) ([]int, error)
	// cost is how often find looks at every host.
	cost() int
}

// Bounds of a selector. With them any selector is answered for 20,000 hosts in
// 50 ms or is refused before that.
const (
	selectorMax  = 1 << 20  // bytes; 100,000 names, listed one by one
	labelTextMax = 16 << 10 // bytes of the label terms in one pair of braces
	expandMax    = 100_000  // names that all ranges and names of a selector stand for
	costMax      = 50       // looks at every host: globs, label terms, '&'
)

// everyHost is the word for all hosts.
const everyHost = "all"

// ParseSelector reads a selector. There are two kinds, and one way to join them.
//
// A host set names hosts, as ClusterShell does:
//
//	fw001                     a host
//	fw[001-300]               a range; padding counts: fw001, not fw1
//	fw[1-3,7],vpn[1-9/2]      parts of a range, a step, and ',' between sets
//	rack[1-4]fw[1-2]          several ranges: eight hosts
//	fw*   vpn?                any bytes, one byte
//	all   *                   every host
//	fw[001-300]!fw[010-019]   without these
//	fw*&*.example.com         in both
//
// The operators ',' '!' '&' bind alike, from left to right: a,b!b&c is
// ((a,b)!b)&c. Every name must be in the inventory and every glob must match
// something, also behind '!': a mistyped exception would spare nobody.
//
// A label selector has requirements, as Kubernetes writes them, that must all
// hold. The fields name, customer, zone and group count as labels:
//
//	customer=acme             also ==
//	role!=vpn                 another role, or none
//	role in (fw,vpn)          also notin
//	drained   !drained        has the label, has it not
//	version>7                 numbers; also <
//	customer=acme,role in (fw,vpn),!drained
//
// A text without braces is a label selector if it begins with '!' or has one of
// = < > ( ) in it; else it is a host set. Inside a host set, braces hold a label
// selector:
//
//	fw[001-300]&{customer=acme,!drained}
//	{role=fw}!fw007
//	{drained}                 a label alone needs them: drained would be a host
func ParseSelector(text string) (Selector, error) {
	terms, err := parseSelector(strings.TrimSpace(text))
	if err != nil {
		return Selector{}, fmt.Errorf("selector %q: %w", abbreviate(text), err)
	}
	return Selector{text: strings.TrimSpace(text), terms: terms}, nil
}

// String returns the selector as it was written.
func (s Selector) String() string { return s.text }

// Select returns the hosts that the selector picks, sorted by name. That it
// picks none is an error, and so is a name that no host has; the error tells
// what comes nearest.
func (v *Inventory) Select(sel Selector) ([]Host, error) {
	var lost lostNames
	chosen := make([]bool, len(v.hosts))
	for _, t := range sel.terms {
		places, err := t.what.find(v, &lost)
		if err != nil {
			return nil, fmt.Errorf("selector %q: %w", abbreviate(sel.text), err)
		}
		chosen = t.apply(chosen, places)
	}
	if lost.count > 0 {
		return nil, fmt.Errorf("selector %q: %s", abbreviate(sel.text), lost.explain(v))
	}
	hosts := make([]Host, 0, len(v.hosts))
	for i, in := range chosen {
		if in {
			hosts = append(hosts, v.hosts[i])
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("selector %q picks no host: %s",
			abbreviate(sel.text), explainEmpty(v, sel))
	}
	return slices.Clip(hosts), nil
}

func (t term) apply(chosen []bool, places []int) []bool {
	if t.join == '&' {
		both := make([]bool, len(chosen))
		for _, i := range places {
			both[i] = chosen[i]
		}
		return both
	}
	for _, i := range places {
		chosen[i] = t.join == ','
	}
	return chosen
}

func parseSelector(text string) ([]term, error) {
	switch {
	case text == "":
		return nil, errors.New("is empty: name hosts, or say all")
	case len(text) > selectorMax:
		return nil, fmt.Errorf("has %d bytes: at most %d", len(text), selectorMax)
	case strings.ContainsFunc(text, unicode.IsControl):
		return nil, errors.New("has a line break or a control character: remove it")
	}
	var terms []term
	var err error
	if isLabelSelector(text) {
		var labels labelTerms
		labels, err = parseLabelTerms(text)
		terms = []term{{',', labels}}
	} else {
		terms, err = parseHostSet(text)
	}
	if err != nil {
		return nil, err
	}
	return terms, checkCost(terms)
}

func isLabelSelector(text string) bool {
	return !strings.Contains(text, "{") && (text[0] == '!' || strings.ContainsAny(text, "=<>()"))
}

func checkCost(terms []term) error {
	names, cost := 0, 0
	for _, t := range terms {
		cost += t.what.cost()
		if t.join == '&' {
			cost++
		}
		if p, ok := t.what.(pattern); ok {
			names += p.count
		}
		switch {
		case names > expandMax:
			return fmt.Errorf("stands for more than %d names: use a glob, a label or less", expandMax)
		case cost > costMax:
			return fmt.Errorf("has too many globs, label terms, label values or '&': "+
				"together at most %d, 16 values counting as one", costMax)
		}
	}
	return nil
}

// parseHostSet reads operands joined by ',' '!' '&'.
func parseHostSet(text string) ([]term, error) {
	var terms []term
	join := byte(',')
	for {
		this, rest, err := cutOperand(text)
		if err != nil {
			return nil, err
		}
		what, err := parseOperand(this)
		switch {
		case this == "" && len(terms) == 0:
			return nil, fmt.Errorf("%q has nothing before it: want a host, a range or a glob "+
				"(all!fw007 is all but one)", rest[0])
		case this == "":
			return nil, fmt.Errorf("%q has nothing behind it: want a host, a range or a glob", join)
		case err != nil:
			return nil, err
		}
		terms = append(terms, term{join, what})
		if rest == "" {
			return terms, nil
		}
		join, text = rest[0], rest[1:]
	}
}

// cutOperand cuts the text before the first operator that is not in brackets or
// braces; the rest begins with that operator or is empty.
func cutOperand(text string) (this, rest string, err error) {
	text = strings.TrimSpace(text)
	end := 0
	if strings.HasPrefix(text, "{") {
		if end = strings.IndexByte(text, '}') + 1; end == 0 {
			return "", "", errors.New("'{' is not closed: want '}' behind the label terms")
		}
	}
	var closing byte
	for ; end < len(text); end++ {
		switch c := text[end]; {
		case c == '[':
			closing = ']'
		case c == closing:
			closing = 0
		case closing == 0 && strings.IndexByte(",!&", c) >= 0:
			return strings.TrimSpace(text[:end]), text[end:], nil
		}
	}
	return strings.TrimSpace(text), "", nil
}

func parseOperand(text string) (operand, error) {
	if inner, found := strings.CutPrefix(text, "{"); found {
		inner, found = strings.CutSuffix(inner, "}")
		if !found {
			return nil, fmt.Errorf("%q: want ',' '!' or '&' behind '}'", abbreviate(text))
		}
		return parseLabelTerms(inner)
	}
	switch {
	case text == "":
		return nil, nil
	case text == everyHost:
		return glob("*"), nil
	case strings.ContainsAny(text, "=<>(){}"):
		return nil, fmt.Errorf("%q: label terms among host names stand in braces, "+
			"as in fw[1-3]&{role=fw}", abbreviate(text))
	case strings.ContainsFunc(outsideBrackets(text), unicode.IsSpace):
		return nil, fmt.Errorf("%q has a blank: join hosts with ',', "+
			"and write the values of a label as role in (fw,vpn)", abbreviate(text))
	case strings.ContainsAny(text, "*?"):
		return parseGlob(text)
	}
	return parsePattern(text)
}

// outsideBrackets leaves out what stands between '[' and ']', where blanks may be.
func outsideBrackets(text string) string {
	var b strings.Builder
	for text != "" {
		before, inside, _ := strings.Cut(text, "[")
		b.WriteString(before)
		_, text, _ = strings.Cut(inside, "]")
	}
	return b.String()
}

// lostNames are the names in a selector that no host has.
type lostNames struct {
	first []string // some of them, each once
	count int
}

func (l *lostNames) add(name string) {
	if slices.Contains(l.first, name) {
		return
	}
	l.count++
	if len(l.first) < 5 {
		l.first = append(l.first, name)
	}
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
	facts := gather(v)
	var hints []string
	for _, name := range l.first {
		for _, h := range append(facts.termsFor(name), nearest(name, facts.names, 2)...) {
			if !slices.Contains(hints, h) && len(hints) < 5 {
				hints = append(hints, h)
			}
		}
	}
	if len(hints) == 0 {
		return text + "; there are " + abbreviate(Fold(facts.names))
	}
	return text + "; nearest: " + strings.Join(hints, ", ")
}

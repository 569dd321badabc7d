package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// plainName is the name of one host.
type plainName string

func (p plainName) cost() int { return 0 }

func (p plainName) mark(s *search, into hostSet) error {
	if i, ok := s.inventory.index[string(p)]; ok {
		into.add(i)
	} else {
		s.lost.add(string(p))
	}
	return nil
}

// pattern is a host name with ranges. Its names are generated one by one and never
// stored, because a short text can stand for very many names.
type pattern struct {
	parts []part
	count int // number of names
}

// part is a piece of text or, if it has spans, any one of their numbers.
type part struct {
	text  string
	spans []span
}

// span is the numbers first, first + step, … up to last, padded with zeros to at least
// width digits.
type span struct {
	first, last, step uint64
	width             int
}

// digitsMax bounds the digits of a number in a range, so that sums fit into 64 bits.
const digitsMax = 18

// parsePattern reads a host name with ranges, globs or both.
func parsePattern(text string) (operand, error) {
	p := pattern{count: 1}
	wild := strings.ContainsAny(text, "*?")
	for at := 0; at < len(text); {
		before, inside, found := strings.Cut(text[at:], "[")
		if err := checkPart(text, before, at); err != nil {
			return nil, err
		}
		if before != "" {
			p.parts = append(p.parts, part{text: before})
		}
		if !found {
			break
		}
		at += len(before) + 1
		inside, _, found = strings.Cut(inside, "]")
		if !found || strings.Contains(inside, "[") {
			return nil, misreadAt(at-1, "%q: '[' is not closed: want ']'", abbreviate(text))
		}
		spans, count, err := parseSpans(inside)
		if err != nil {
			return nil, moved(at, fmt.Errorf("%q: %w", abbreviate(text), err))
		}
		if endsInDigit(before) && slices.ContainsFunc(spans, span.grows) {
			return nil, misreadAt(at-1, "%q: the range goes on from the digit before it: "+
				"give its numbers the same length, or take the digit into it", abbreviate(text))
		}
		at += len(inside) + 1
		p.parts = append(p.parts, part{spans: spans})
		if p.count *= count; p.count > expandMax {
			return nil, fmt.Errorf("%q stands for more than %d names", abbreviate(text), expandMax)
		}
	}
	if wild {
		return p.globs(text)
	}
	return p, p.check(text)
}

// checkPart refuses characters that no host name has; at is the part's position in the text.
func checkPart(text, part string, at int) error {
	bad := func(r rune) bool { return r == ']' || notInName(r) && r != '*' && r != '?' }
	i := strings.IndexFunc(part, bad)
	switch {
	case i < 0:
		return nil
	case part[i] == ']':
		return misreadAt(at+i, "%q: ']' without '['", abbreviate(text))
	}
	return misreadAt(at+i, "%q has %q, which no host name has", abbreviate(text), []rune(part[i:])[0])
}

// check refuses a pattern that cannot match any valid host name.
func (p pattern) check(text string) error {
	if len(p.parts) > nameMax {
		return fmt.Errorf("%q stands for names of more than %d bytes", abbreviate(text), nameMax)
	}
	name := make([]byte, 0, nameMax)
	for _, part := range p.parts {
		if part.spans == nil {
			name = append(name, part.text...)
		} else {
			name = part.spans[0].append(name, part.spans[0].first)
		}
	}
	return CheckName(string(name))
}

func parseSpans(text string) (spans []span, count int, err error) {
	for item := range strings.SplitSeq(text, ",") {
		s, err := parseSpan(strings.TrimSpace(item))
		if err != nil {
			return nil, 0, fmt.Errorf("range %q: %w", abbreviate(item), err)
		}
		n := (s.last-s.first)/s.step + 1
		if n > expandMax || count+int(n) > expandMax {
			return nil, 0, fmt.Errorf("range %q stands for more than %d names",
				abbreviate(text), expandMax)
		}
		count += int(n)
		spans = append(spans, s)
	}
	return spans, count, nil
}

// parseSpan reads 7, 1-9 or 1-9/2. A leading zero in the first number pads all numbers to
// its length, and the last number must have the same length.
func parseSpan(text string) (span, error) {
	numbers, step, stepped := strings.Cut(text, "/")
	first, last, isRange := strings.Cut(numbers, "-")
	if !isRange {
		last = first
	}
	if !stepped {
		step = "1"
	}
	var s span
	for _, n := range []struct {
		text string
		into *uint64
	}{{first, &s.first}, {last, &s.last}, {step, &s.step}} {
		if n.text == "" || len(n.text) > digitsMax || strings.Trim(n.text, "0123456789") != "" {
			return span{}, fmt.Errorf("%q is not a number of 1 to %d digits: want 1-9, 7 or 1-9/2",
				abbreviate(n.text), digitsMax)
		}
		*n.into, _ = strconv.ParseUint(n.text, 10, 64) // cannot fail: only digits
	}
	if padded(first) {
		s.width = len(first)
	}
	switch {
	case stepped && !isRange:
		return span{}, errors.New("a step needs a range before it, as in 1-9/2")
	case s.step == 0:
		return span{}, errors.New("step 0 never comes to an end: want 1 or more")
	case s.first > s.last:
		return span{}, errors.New("runs backwards: write the smaller number first")
	case (padded(first) || padded(last)) && len(first) != len(last):
		return span{}, errors.New("is padded on one side: write both numbers with as many digits")
	}
	return s, nil
}

// grows reports whether the last number has more digits than the first. parsePattern refuses
// that behind a digit, because tools disagree: ClusterShell reads fw1[8-12] as fw18 to
// fw112, others as fw18, fw19, fw110 to fw112.
func (s span) grows() bool {
	return s.width == 0 && len(s.append(nil, s.first)) != len(s.append(nil, s.last))
}

func endsInDigit(s string) bool {
	return s != "" && '0' <= s[len(s)-1] && s[len(s)-1] <= '9'
}

// padded reports whether a number has leading zeros.
func padded(number string) bool { return len(number) > 1 && number[0] == '0' }

func (s span) append(to []byte, n uint64) []byte {
	var digits [20]byte
	d := strconv.AppendUint(digits[:0], n, 10)
	for i := len(d); i < s.width; i++ {
		to = append(to, '0')
	}
	return append(to, d...)
}

// each calls visit with every name. The slice is valid only during the call.
func (p pattern) each(visit func(name []byte)) {
	p.walk(0, make([]byte, 0, nameMax), visit)
}

func (p pattern) walk(i int, name []byte, visit func([]byte)) {
	if i == len(p.parts) {
		visit(name)
		return
	}
	if p.parts[i].spans == nil {
		p.walk(i+1, append(name, p.parts[i].text...), visit)
		return
	}
	for _, s := range p.parts[i].spans {
		for n := s.first; n <= s.last; n += s.step {
			p.walk(i+1, s.append(name, n), visit)
		}
	}
}

func (p pattern) cost() int { return 0 }

func (p pattern) mark(s *search, into hostSet) error {
	p.each(func(name []byte) {
		if i, ok := s.inventory.index[string(name)]; ok {
			into.add(i)
		} else {
			s.lost.add(string(name))
		}
	})
	return nil
}

// globs match host names; '*' stands for any bytes and '?' for one.
type globs []glob

type glob string

// globs returns a glob for each name of the pattern.
func (p pattern) globs(text string) (operand, error) {
	switch {
	case p.count > costMax:
		return nil, fmt.Errorf("%q stands for %d globs: at most %d", abbreviate(text), p.count, costMax)
	case p.count == 1 && len(text) > nameMax:
		return nil, fmt.Errorf("%q has %d bytes: at most %d", abbreviate(text), len(text), nameMax)
	}
	var list globs
	p.each(func(name []byte) { list = append(list, glob(name)) })
	return list, nil
}

func (g globs) cost() int { return len(g) }

func (g globs) mark(s *search, into hostSet) error {
	for _, one := range g {
		if !one.mark(s.inventory, into) {
			s.lost.add(string(one))
		}
	}
	return nil
}

// mark adds the matching hosts and reports whether there are any. Hosts are sorted by name,
// so it only looks at those with the glob's literal beginning.
func (g glob) mark(v *Inventory, into hostSet) bool {
	begin := string(g)[:strings.IndexAny(string(g), "*?")]
	from, _ := slices.BinarySearchFunc(v.hosts, begin, func(h Host, s string) int {
		return strings.Compare(h.Name, s)
	})
	some := false
	for i := from; i < len(v.hosts) && strings.HasPrefix(v.hosts[i].Name, begin); i++ {
		if g.matches(v.hosts[i].Name) {
			into.add(i)
			some = true
		}
	}
	return some
}

// matches reports whether the glob matches a name. It backtracks only to the last '*', so it
// takes at most len(g) × len(name) steps.
func (g glob) matches(name string) bool {
	at, star, from := 0, -1, 0
	for i := 0; i < len(name); {
		switch {
		case at < len(g) && g[at] == '*':
			star, from = at, i
			at++
		case at < len(g) && (g[at] == '?' || g[at] == name[i]):
			at++
			i++
		case star >= 0:
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(string(g[at:]), "*") == ""
}

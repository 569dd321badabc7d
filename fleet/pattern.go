package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pattern is a host name with ranges in it, or without any. What it stands for
// is walked, never stored: a short text can stand for very many names.
type pattern struct {
	parts []part
	count int // names it stands for
}

// part is a piece of text or, if it has spans, any of their numbers.
type part struct {
	text  string
	spans []span
}

// span is the numbers first, first + step, … up to last, zeros in front filling
// them up to width.
type span struct {
	first, last, step uint64
	width             int
}

// digitsMax bounds the numbers of a range, so that sums stay in 64 bits.
const digitsMax = 18

func parsePattern(text string) (pattern, error) {
	p := pattern{count: 1}
	for rest := text; rest != ""; {
		before, inside, found := strings.Cut(rest, "[")
		if strings.Contains(before, "]") {
			return pattern{}, fmt.Errorf("%q: ']' without '['", abbreviate(text))
		}
		if i := strings.IndexFunc(before, notInName); i >= 0 {
			return pattern{}, fmt.Errorf("%q has %q, which no host name has",
				abbreviate(text), []rune(before[i:])[0])
		}
		if before != "" {
			p.parts = append(p.parts, part{text: before})
		}
		if !found {
			break
		}
		inside, rest, found = strings.Cut(inside, "]")
		if !found || strings.Contains(inside, "[") {
			return pattern{}, fmt.Errorf("%q: '[' is not closed: want ']'", abbreviate(text))
		}
		spans, count, err := parseSpans(inside)
		if err != nil {
			return pattern{}, fmt.Errorf("%q: %w", abbreviate(text), err)
		}
		if endsInDigit(before) && slices.ContainsFunc(spans, span.grows) {
			return pattern{}, fmt.Errorf("%q: the range goes on from the digit before it: "+
				"give its numbers the same length, or take the digit into it", abbreviate(text))
		}
		p.parts = append(p.parts, part{spans: spans})
		if p.count *= count; p.count > expandMax {
			return pattern{}, fmt.Errorf("%q stands for more than %d names", abbreviate(text), expandMax)
		}
	}
	return p, p.check(text)
}

// check refuses what can be the name of no host, whatever the numbers.
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

// parseSpan reads 7, 1-9 or 1-9/2. A zero in front of the first number makes all
// as long as it is, and the last one must then be as long.
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
		*n.into, _ = strconv.ParseUint(n.text, 10, 64) // was checked
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

// grows tells whether the last number has more digits than the first. Behind a
// digit that is refused: ClusterShell reads fw1[8-12] as fw18 to fw112, others as
// fw18, fw19, fw110 to fw112, and nobody should have to know.
func (s span) grows() bool {
	return s.width == 0 && len(s.append(nil, s.first)) != len(s.append(nil, s.last))
}

func endsInDigit(s string) bool {
	return s != "" && '0' <= s[len(s)-1] && s[len(s)-1] <= '9'
}

// padded tells whether a number is written with zeros in front.
func padded(number string) bool { return len(number) > 1 && number[0] == '0' }

func (s span) append(to []byte, n uint64) []byte {
	var digits [20]byte
	d := strconv.AppendUint(digits[:0], n, 10)
	for i := len(d); i < s.width; i++ {
		to = append(to, '0')
	}
	return append(to, d...)
}

// each calls visit with every name, which is only good during the call.
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

func (p pattern) find(v *Inventory, lost *lostNames) ([]int, error) {
	places := make([]int, 0, p.count)
	p.each(func(name []byte) {
		if i, ok := v.index[string(name)]; ok {
			places = append(places, i)
		} else {
			lost.add(string(name))
		}
	})
	return places, nil
}

// glob is a host name in which '*' stands for any bytes and '?' for one.
type glob string

func parseGlob(text string) (glob, error) {
	if strings.ContainsAny(text, "[]") {
		return "", fmt.Errorf("%q has a range beside '*' or '?': use one or the other",
			abbreviate(text))
	}
	if len(text) > nameMax {
		return "", fmt.Errorf("%q has %d bytes: at most %d", abbreviate(text), len(text), nameMax)
	}
	notHere := func(r rune) bool { return notInName(r) && r != '*' && r != '?' }
	if i := strings.IndexFunc(text, notHere); i >= 0 {
		return "", fmt.Errorf("%q has %q, which no host name has",
			abbreviate(text), []rune(text[i:])[0])
	}
	return glob(text), nil
}

func (g glob) cost() int { return 1 }

func (g glob) find(v *Inventory, lost *lostNames) ([]int, error) {
	var places []int
	for i := range v.hosts {
		if g.matches(v.hosts[i].Name) {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		lost.add(string(g))
	}
	return places, nil
}

// matches goes back only to the last '*', so it takes at most len(g) × len(name)
// steps.
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

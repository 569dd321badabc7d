package fleet

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a selector. Within them any selector takes at most 50 ms for 20,000 hosts;
// others are refused before the search.
const (
	selectorMax  = 1 << 20  // bytes; 100,000 names, listed one by one
	labelTextMax = 16 << 10 // bytes of the label terms in one pair of braces
	expandMax    = 100_000  // names in a selector, with those from ranges
	costMax      = 50       // passes over all hosts: globs, label terms, parentheses
	depthMax     = 8        // nesting of parentheses
)

// everyHost is the word that selects all hosts.
const everyHost = "all"

// operators join host sets.
const operators = ",!&^"

// ParseSelector reads a selector. There are two kinds, and a way to combine them.
//
// A host set names hosts, as ClusterShell does:
//
//	fw001                     a host
//	fw[001-300]               a range; padding counts: fw001, not fw1
//	fw[1-3,7],vpn[1-9/2]      parts of a range, a step, and ',' between sets
//	rack[1-4]fw[1-2]          several ranges: eight hosts
//	fw*   vpn?   rack[1-2]*   any bytes, one byte
//	all   *                   every host
//	fw[001-300]!fw[010-019]   without these; also fw[001-300],!fw[010-019]
//	fw*&*.example.com         in both
//	fw[1-5]^fw[4-9]           in exactly one of them
//	fw*!(vpn1,rack*&*-a)      parentheses first
//	task:0wcy7y2fb2/failed    the hosts on which that task failed; see Earlier
//	group.web                 the hosts of an Ansible group, which have the label group.web=true
//
// The operators ',' '!' '&' '^' have the same precedence, from left to right: a,b!b&c is
// ((a,b)!b)&c. Every name must be in the inventory and every glob must match something,
// also behind '!', because a mistyped exception would protect no host.
//
// A label selector has requirements in the syntax of Kubernetes, and a host must meet all
// of them. The fields name, customer, zone and group count as labels:
//
//	customer=acme             also ==
//	role!=vpn                 another role, or no role
//	role in (fw,vpn)          also notin
//	drained   !drained        has the label, lacks the label
//	version>7                 numbers; also <
//	customer=acme,role in (fw,vpn),!drained
//
// A text without braces is a label selector if it begins with '!' or contains one of
// = < > or in (…); otherwise it is a host set. Inside a host set, braces enclose a
// label selector:
//
//	fw[001-300]&{customer=acme,!drained}
//	{role=fw}!fw007
//	{drained}                 braces are needed: drained alone would be a host
//
// The error is a *SelectorError.
func ParseSelector(text string) (Selector, error) {
	trimmed := strings.TrimSpace(text)
	terms, err := parseSelector(trimmed)
	if err != nil {
		return Selector{}, newSelectorError(text, trimmed, err)
	}
	return Selector{text: trimmed, terms: terms}, nil
}

// SelectorError describes a mistake in a selector and its position.
type SelectorError struct {
	Text   string // the selector
	Column int    // position of the mistake in characters, from 1; 0: the whole text
	Err    error
}

// Error returns a text such as: selector "fw[1-3", column 3: '[' is not closed: want ']'.
func (e *SelectorError) Error() string {
	if e.Column == 0 {
		return fmt.Sprintf("selector %q: %v", excerpt(e.Text, 0), e.Err)
	}
	return fmt.Sprintf("selector %q, column %d: %v", excerpt(e.Text, e.Column-1), e.Column, e.Err)
}

// Unwrap returns the mistake without its position.
func (e *SelectorError) Unwrap() error { return e.Err }

func newSelectorError(text, trimmed string, err error) *SelectorError {
	e := &SelectorError{Text: text, Err: err}
	var here *misread
	if errors.As(err, &here) {
		at := min(here.at+strings.Index(text, trimmed), len(text))
		e.Column = utf8.RuneCountInString(text[:at]) + 1
		e.Err = here.err
	}
	return e
}

// excerpt returns the part of a selector that a message quotes: all of a short one, else
// the text around a character.
func excerpt(text string, character int) string {
	const before, most = 20, 60
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	from := max(0, min(character-before, len(runes)-most))
	part := string(runes[from:min(from+most, len(runes))])
	if from > 0 {
		part = "…" + part
	}
	if from+most < len(runes) {
		part += "…"
	}
	return part
}

// misread is a mistake with the index of a byte in the text.
type misread struct {
	at  int
	err error
}

func (e *misread) Error() string { return e.err.Error() }

func (e *misread) Unwrap() error { return e.err }

func misreadAt(at int, format string, args ...any) error {
	return &misread{at, fmt.Errorf(format, args...)}
}

// moved converts a mistake in a part of a text, which begins at from, to one in the whole.
func moved(from int, err error) error {
	var here *misread
	switch {
	case err == nil:
		return nil
	case errors.As(err, &here):
		return &misread{from + here.at, here.err}
	}
	return &misread{from, err}
}

func parseSelector(text string) ([]term, error) {
	switch {
	case text == "":
		return nil, errors.New("is empty: name hosts, or say all")
	case len(text) > selectorMax:
		return nil, fmt.Errorf("has %d bytes: at most %d", len(text), selectorMax)
	}
	if i := strings.IndexFunc(text, unicode.IsControl); i >= 0 {
		return nil, misreadAt(i, "has a line break or a control character: remove it")
	}
	terms, err := parseTerms(text, 0)
	if err != nil {
		return nil, err
	}
	return terms, checkCost(terms)
}

// parseTerms reads a label selector or a host set.
func parseTerms(text string, depth int) ([]term, error) {
	if !isLabelSelector(text) {
		return parseHostSet(text, depth)
	}
	labels, err := parseLabelTerms(text)
	if err != nil {
		return nil, err
	}
	return []term{{',', labels}}, nil
}

func isLabelSelector(text string) bool {
	if strings.Contains(text, "{") || hasGroup(text) || text == "" {
		return false
	}
	return text[0] == '!' || strings.ContainsAny(text, "=<>()")
}

// hasGroup reports whether a parenthesis opens where a host could stand. In label
// selectors, parentheses open only after in and notin.
func hasGroup(text string) bool {
	before := byte(',')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '(' && (before == '(' || strings.IndexByte(operators, before) >= 0):
			return true
		case c != ' ':
			before = c
		}
	}
	return false
}

func checkCost(terms []term) error {
	names := 0
	for _, o := range flat(terms) {
		switch p := o.(type) {
		case plainName, ansibleGroup:
			names++
		case pattern:
			names += p.count
		}
	}
	switch {
	case names > expandMax:
		return fmt.Errorf("stands for more than %d names: use a glob, a label or less", expandMax)
	case termsCost(terms) > costMax:
		return fmt.Errorf("has too many globs, label terms or parentheses: together at most %d", costMax)
	}
	return nil
}

func termsCost(terms []term) int {
	cost := 0
	for _, t := range terms {
		cost += t.what.cost()
	}
	return cost
}

// parseHostSet reads operands joined by operators.
func parseHostSet(text string, depth int) ([]term, error) {
	var terms []term
	join, at := byte(','), 0
	for {
		end, err := operandEnd(text, at)
		if err != nil {
			return nil, err
		}
		from := at + len(text[at:end]) - len(strings.TrimLeft(text[at:end], " "))
		this := strings.TrimRight(text[from:end], " ")
		switch {
		case this == "" && len(terms) > 0 && join == ',' && end < len(text) && text[end] == '!':
			join, at = '!', end+1 // a,!b means a!b, as users of label selectors and ClusterShell expect
			continue
		case this == "" && len(terms) == 0:
			return nil, misreadAt(end, "%q has nothing before it: want a host, a range or a glob "+
				"(all!fw007 is all but one)", text[end])
		case this == "":
			return nil, misreadAt(at-1, "%q has nothing behind it: want a host, a range or a glob", join)
		}
		what, err := parseOperand(this, depth)
		if err != nil {
			return nil, moved(from, err)
		}
		terms = append(terms, term{join, what})
		if end == len(text) {
			return terms, nil
		}
		join, at = text[end], end+1
	}
}

// operandEnd returns the index of the first operator at or after from that is outside of
// brackets, braces and parentheses, or the end of the text if there is none.
func operandEnd(text string, from int) (int, error) {
	var closing []byte
	opened := from
	for i := from; i < len(text); i++ {
		c, inside := text[i], len(closing) > 0
		switch {
		case inside && c == closing[len(closing)-1]:
			closing = closing[:len(closing)-1]
		case inside && closing[len(closing)-1] != ')':
			// Brackets and braces contain no other brackets.
		case c == '[' || c == '{' || c == '(':
			if !inside {
				opened = i
			}
			closing = append(closing, map[byte]byte{'[': ']', '{': '}', '(': ')'}[c])
		case !inside && strings.IndexByte(operators, c) >= 0 && !negates(text[from:i]):
			return i, nil
		}
	}
	if len(closing) == 0 {
		return len(text), nil
	}
	hint := map[byte]string{'[': "want ']'", '{': "want '}' behind the label terms", '(': "want ')'"}
	return 0, misreadAt(opened, "%q is not closed: %s", text[opened], hint[text[opened]])
}

// negates reports whether a '!' behind this text belongs to its operand: task:ID/!failed.
func negates(before string) bool {
	before = strings.TrimLeft(before, " ")
	return strings.HasPrefix(before, earlierPrefix) && strings.HasSuffix(before, "/")
}

func parseOperand(text string, depth int) (operand, error) {
	switch {
	case text[0] == '{':
		return parseBraces(text)
	case text[0] == '(':
		return parseGroup(text, depth)
	case text == everyHost:
		return globs{"*"}, nil
	case strings.HasPrefix(text, earlierPrefix):
		return parseEarlier(text)
	case strings.HasPrefix(text, GroupPrefix) && CheckLabel(text, groupValue) == nil:
		return ansibleGroup(text), nil
	case strings.IndexFunc(text, notInName) < 0:
		return plainName(text), CheckName(text)
	case text[0] == '@':
		return nil, fmt.Errorf("%q: only the command line reads a file, and sends its content",
			abbreviate(text))
	}
	if i := strings.IndexAny(text, "=<>(){}"); i >= 0 {
		return nil, misreadAt(i, "%q: label terms among host names stand in braces, "+
			"as in fw[1-3]&{role=fw}", abbreviate(text))
	}
	if i := strings.IndexFunc(outsideBrackets(text), unicode.IsSpace); i >= 0 {
		return nil, misreadAt(i, "%q has a blank: join hosts with ',', "+
			"and write the values of a label as role in (fw,vpn)", abbreviate(text))
	}
	return parsePattern(text)
}

func parseBraces(text string) (operand, error) {
	if end := strings.IndexByte(text, '}'); end < len(text)-1 {
		return nil, misreadAt(end+1, "%q: want ',' '!' '&' or '^' behind '}'", abbreviate(text))
	}
	terms, err := parseLabelTerms(text[1 : len(text)-1])
	if err != nil {
		return nil, moved(1, err)
	}
	return terms, nil
}

func parseGroup(text string, depth int) (operand, error) {
	end := strings.LastIndexByte(text, ')')
	inner := strings.TrimSpace(text[1:end])
	switch {
	case depth == depthMax:
		return nil, fmt.Errorf("more than %d parentheses in each other: use less", depthMax)
	case end < len(text)-1 || closesBefore(text, end):
		return nil, fmt.Errorf("%q: want ',' '!' '&' or '^' between ')' and what follows",
			abbreviate(text))
	case inner == "":
		return nil, errors.New("the parentheses are empty: want hosts in them")
	}
	terms, err := parseTerms(inner, depth+1)
	if err != nil {
		return nil, moved(strings.Index(text, inner), err)
	}
	return group(terms), nil
}

// closesBefore reports whether the text's first parenthesis closes before end.
func closesBefore(text string, end int) bool {
	depth := 0
	for i := range end {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// outsideBrackets replaces blanks between '[' and ']', because they are allowed there.
func outsideBrackets(text string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		switch {
		case r == '[':
			inside = true
		case r == ']':
			inside = false
		case inside && r == ' ':
			return '_'
		}
		return r
	}, text)
}

package ansible

import (
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"muster/internal/lazyregexp"
)

// pythonValue reads the value of a variable in an INI file: a Python literal, or else plain
// text. So 0x10 is 16, 'a b' is a b, [1, 2] is a list, and 007 is the text 007, because
// Python has no such number.
func pythonValue(text string, line int) *yaml.Node {
	p := literal{rest: text, line: line}
	n := p.tuple()
	if n == nil || !p.atEnd() {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: line}
	}
	return n
}

// literal parses Python literals. Its methods return nil if they find none.
type literal struct {
	rest  string
	line  int
	depth int
}

// literalDepth bounds nested lists.
const literalDepth = 50

func (p *literal) node(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value, Line: p.line}
}

func (p *literal) skip() { p.rest = strings.TrimLeft(p.rest, " \t\f\r\n") }

func (p *literal) take(token string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, token)
	if ok {
		p.rest = rest
	}
	return ok
}

// atEnd reports whether only a comment follows, or nothing.
func (p *literal) atEnd() bool {
	p.skip()
	return p.rest == "" || p.rest[0] == '#'
}

// tuple reads one value, or several with commas, which become a list.
func (p *literal) tuple() *yaml.Node {
	first := p.value()
	if first == nil || !p.take(",") {
		return first
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: p.line}
	list.Content = append(list.Content, first)
	for !p.atEnd() {
		next := p.value()
		if next == nil {
			return nil
		}
		list.Content = append(list.Content, next)
		if !p.take(",") {
			break
		}
	}
	return list
}

func (p *literal) value() *yaml.Node {
	p.skip()
	if p.depth++; p.depth > literalDepth {
		return nil
	}
	defer func() { p.depth-- }()
	switch {
	case p.take("["):
		return p.list("]")
	case p.take("("):
		return p.parentheses()
	case p.take("{"):
		return p.braces()
	}
	if n := p.text(); n != nil {
		return n
	}
	return p.wordOrNumber()
}

func (p *literal) list(end string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: p.line}
	for !p.take(end) {
		n := p.value()
		if n == nil {
			return nil
		}
		list.Content = append(list.Content, n)
		if !p.take(",") {
			if !p.take(end) {
				return nil
			}
			break
		}
	}
	return list
}

// parentheses reads (1, 2), which is a list, or (1), which is 1.
func (p *literal) parentheses() *yaml.Node {
	if p.take(")") {
		return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: p.line}
	}
	n := p.value()
	switch {
	case n == nil:
		return nil
	case p.take(")"):
		return n
	case !p.take(","):
		return nil
	}
	list := p.list(")")
	if list != nil {
		list.Content = append([]*yaml.Node{n}, list.Content...)
	}
	return list
}

// braces reads a mapping. It returns nil for a set, which therefore stays text; Ansible fails
// on sets, because JSON has none.
func (p *literal) braces() *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: p.line}
	for !p.take("}") {
		key := p.value()
		if key == nil || key.Kind != yaml.ScalarNode || !p.take(":") {
			return nil
		}
		value := p.value()
		if value == nil {
			return nil
		}
		m.Content = append(m.Content, key, value)
		if !p.take(",") {
			if !p.take("}") {
				return nil
			}
			break
		}
	}
	return m
}

// text reads one or more quoted strings in a row.
func (p *literal) text() *yaml.Node {
	var all strings.Builder
	found := false
	for {
		p.skip()
		prefix := len(p.rest) - len(strings.TrimLeft(p.rest, "rRuU"))
		if prefix > 1 || len(p.rest) == prefix || p.rest[prefix] != '"' && p.rest[prefix] != '\'' {
			break
		}
		raw := prefix == 1 && strings.ContainsAny(p.rest[:1], "rR")
		one, rest, ok := quoted(p.rest[prefix:], raw)
		if !ok {
			return nil
		}
		all.WriteString(one)
		p.rest, found = rest, true
	}
	if !found {
		return nil
	}
	return p.node("!!str", all.String())
}

// quoted reads a quoted string at the start of s.
func quoted(s string, raw bool) (text, rest string, ok bool) {
	quote := s[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(s, triple) {
		quote = triple
	}
	s = s[len(quote):]
	var b strings.Builder
	for s != "" {
		switch {
		case strings.HasPrefix(s, quote):
			return b.String(), s[len(quote):], true
		case s[0] == '\\' && len(s) > 1:
			if raw {
				b.WriteString(s[:2])
				s = s[2:]
				continue
			}
			r, tail, ok := escape(s[1:])
			if !ok {
				return "", "", false
			}
			b.WriteString(r)
			s = tail
		case s[0] == '\n':
			return "", "", false
		default:
			b.WriteByte(s[0])
			s = s[1:]
		}
	}
	return "", "", false
}

// escape reads the characters after a backslash.
func escape(s string) (text, rest string, ok bool) {
	plain := map[byte]string{'\\': `\`, '\'': "'", '"': `"`, 'a': "\a", 'b': "\b", 'f': "\f",
		'n': "\n", 'r': "\r", 't': "\t", 'v': "\v", '\n': ""}
	if t, known := plain[s[0]]; known {
		return t, s[1:], true
	}
	digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[0]]
	if digits > 0 {
		if len(s) < 1+digits {
			return "", "", false
		}
		n, err := strconv.ParseUint(s[1:1+digits], 16, 32)
		if err != nil || !utf8.ValidRune(rune(n)) {
			return "", "", false
		}
		return string(rune(n)), s[1+digits:], true
	}
	octal := 0
	for octal < min(3, len(s)) && '0' <= s[octal] && s[octal] <= '7' {
		octal++
	}
	if octal > 0 {
		n, _ := strconv.ParseUint(s[:octal], 8, 32)
		return string(rune(n)), s[octal:], true
	}
	if s[0] == 'N' { // the name of a Unicode character, which is not supported
		return "", "", false
	}
	return `\` + s[:1], s[1:], true
}

var (
	wordForm = lazyregexp.New(`^(?:True|False|None)\b`)
	intForm  = lazyregexp.New(`^[+-]?[ \t]*(?:0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|` +
		`0[bB](?:_?[01])+|[1-9](?:_?[0-9])*|0(?:_?0)*)`)
	floatForm = lazyregexp.New(`^[+-]?[ \t]*(?:(?:[0-9](?:_?[0-9])*)?\.[0-9](?:_?[0-9])*|` +
		`[0-9](?:_?[0-9])*\.?)(?:[eE][+-]?[0-9](?:_?[0-9])*)?`)
)

func (p *literal) wordOrNumber() *yaml.Node {
	if w := wordForm().FindString(p.rest); w != "" {
		p.rest = p.rest[len(w):]
		if w == "None" {
			return p.node("!!null", "")
		}
		return p.node("!!bool", strings.ToLower(w))
	}
	i, f := intForm().FindString(p.rest), floatForm().FindString(p.rest)
	switch {
	case i != "" && len(i) >= len(f):
		n, ok := new(big.Int).SetString(strings.NewReplacer(" ", "", "\t", "").Replace(i), 0)
		if !ok {
			return nil
		}
		p.rest = p.rest[len(i):]
		return p.node("!!int", n.String())
	case strings.ContainsAny(f, ".eE"):
		x, err := strconv.ParseFloat(strings.NewReplacer(" ", "", "\t", "", "_", "").Replace(f), 64)
		if err != nil {
			return nil
		}
		p.rest = p.rest[len(f):]
		return p.node("!!float", pythonFloat(x))
	}
	return nil
}

// pythonFloat formats a number as Python does: 1.0, 0.25, 1e+16.
func pythonFloat(x float64) string {
	s := strconv.FormatFloat(x, 'g', -1, 64)
	if a := max(x, -x); a >= 1e-4 && a < 1e16 || a == 0 {
		s = strconv.FormatFloat(x, 'f', -1, 64)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
	}
	return s
}

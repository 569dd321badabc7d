package scripts

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
)

// parser reads one runbook and collects its mistakes.
type parser struct {
	file      string
	lines     []string // of the file
	name      place    // of the runbook's name
	undo      place    // of the name of the runbook that reverts it
	arguments []Argument
	saved     savedNames
	functions []string // that the library defines

	secretsFit bool   // the current text may use secrets
	rescues    []Step // steps of on_fail so far
	mistakes   Mistakes
}

// place is a position in a file, both from 1.
type place struct{ line, col int }

// value is the value of one key.
type value struct {
	*yaml.Node
	key     string
	keyNode *yaml.Node // for an item of a list: the item itself
}

func (v value) isMapping() bool { return v.Kind == yaml.MappingNode }
func (v value) isList() bool    { return v.Kind == yaml.SequenceNode }
func (v value) isScalar() bool  { return v.Kind == yaml.ScalarNode }

// key is one key of a mapping with the function that reads its value. Keys are read in the
// order of their table, not of the file, so that later ones can rely on
// earlier ones.
type key[T any] struct {
	name string
	read func(p *parser, v value, into *T)
}

func keyNames[T any](keys []key[T]) []string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
	}
	return names
}

// readMapping reads the keys of a mapping into a T and returns those that were there.
func readMapping[T any](p *parser, v value, keys []key[T], into *T) map[string]value {
	seen := map[string]value{}
	for _, one := range p.pairs(v) {
		if first, twice := seen[one.key]; twice {
			p.add(at(one.keyNode), "key %s is there twice, first on line %d",
				brief(one.key), first.keyNode.Line)
			continue
		}
		seen[one.key] = one
	}

	known := keyNames(keys)
	for name, one := range seen {
		if !slices.Contains(known, name) && !p.full() {
			p.add(at(one.keyNode), "unknown key %q: %s", fleet.Word(name), insteadOfKey(name, known))
		}
	}

	for _, k := range keys {
		if one, ok := seen[k.name]; ok {
			k.read(p, one, into)
		}
	}
	return seen
}

// pairs returns the keys and values of a mapping, in the order of the file.
func (p *parser) pairs(v value) []value {
	if !v.isMapping() {
		p.wrong(v, "a mapping (key: value)")
		return nil
	}
	var pairs []value
	for i := 0; i+1 < len(v.Content); i += 2 {
		k := v.Content[i]
		if k.Kind != yaml.ScalarNode {
			p.add(at(k), "a key must be a single word")
			continue
		}
		pairs = append(pairs, value{Node: v.Content[i+1], key: k.Value, keyNode: k})
	}
	return pairs
}

// items returns the items of a list.
func (p *parser) items(v value) []value {
	if !v.isList() {
		p.wrong(v, "a list (lines that start with a dash)")
		return nil
	}
	var items []value
	for i, n := range v.Content {
		items = append(items, value{Node: n, key: fmt.Sprintf("%s[%d]", v.key, i+1), keyNode: n})
	}
	return items
}

// text reads a text of at most the given bytes. A number counts as the text that stands in
// the file.
func (p *parser) text(v value, most int) (string, bool) {
	switch {
	case v.Kind != yaml.ScalarNode || v.ShortTag() == "!!null":
		p.wrong(v, wantText)
		return "", false
	case len(v.Value) > most:
		p.add(at(v.Node), "%s has %d bytes: at most %d", v.key, len(v.Value), most)
		return "", false
	case strings.ContainsRune(v.Value, 0):
		p.add(at(v.Node), "%s has a NUL character, which no text on a host can hold", v.key)
		return "", false
	}
	return v.Value, true
}

// nameMust matches the names of runbooks, steps and arguments: words that need no quotes
// anywhere and that no program takes for an option.
var nameMust = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*$`)

// word reads the name of a runbook, step or argument.
func (p *parser) word(v value) string {
	s, ok := p.text(v, nameMax)
	if !ok {
		return ""
	}
	if !nameMust.MatchString(s) {
		p.add(at(v.Node), "%s %s: use lower-case letters, digits, '-' and '_', "+
			"and start with a letter or a digit", v.key, brief(s))
		return ""
	}
	return s
}

func (p *parser) flag(v value) bool {
	if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!bool" {
		p.wrong(v, "true or false")
		return false
	}
	return strings.EqualFold(v.Value, "true")
}

func (p *parser) number(v value, least, most int64) (int64, bool) {
	if v.Kind != yaml.ScalarNode {
		p.wrong(v, "a whole number")
		return 0, false
	}
	n, err := strconv.ParseInt(v.Value, 10, 64)
	switch {
	case err != nil:
		p.wrong(v, "a whole number")
		return 0, false
	case n < least || n > most:
		p.add(at(v.Node), "%s is %d: want %d to %d", v.key, n, least, most)
		return 0, false
	}
	return n, true
}

func (p *parser) duration(v value, least, most time.Duration) (time.Duration, bool) {
	if v.Kind != yaml.ScalarNode {
		p.wrong(v, wantDuration)
		return 0, false
	}
	d, err := time.ParseDuration(v.Value)
	switch {
	case err != nil || d%time.Second != 0:
		p.wrong(v, wantDuration)
		return 0, false
	case d < least || d > most:
		p.add(at(v.Node), "%s is %s: want %s to %s", v.key, d, least, most)
		return 0, false
	}
	return d, true
}

const (
	wantText     = "a text"
	wantDuration = "a duration in whole seconds such as 90s, 5m or 1h30m"
)

// wrong reports a value of the wrong type. It skips aliases, because checkPlain reports
// them.
func (p *parser) wrong(v value, want string) {
	got := ""
	switch v.Kind {
	case yaml.AliasNode:
		return
	case yaml.MappingNode:
		got = "a mapping"
		if v.Style&yaml.FlowStyle != 0 && want == wantText {
			got += bracesNeedQuotes
		}
	case yaml.SequenceNode:
		got = "a list"
	default:
		got = brief(v.Value)
		if v.key == wholeFile { // the file may be any file
			got = "a single value"
		}
		if v.ShortTag() == "!!null" {
			got = "nothing"
		}
	}
	p.add(at(v.Node), "%s: want %s, got %s", v.key, want, got)
}

func (p *parser) add(where place, format string, args ...any) {
	if p.full() {
		return
	}
	line := max(1, min(where.line, len(p.lines))) // at the end: the last line
	p.mistakes = append(p.mistakes, Mistake{
		File: p.file, Line: line, Col: where.col, Text: fmt.Sprintf(format, args...),
	})
}

// full limits the work for a file that is full of mistakes.
func (p *parser) full() bool { return len(p.mistakes) >= 10*mistakesMax }

func at(n *yaml.Node) place { return place{line: n.Line, col: n.Column} }

package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fields reads a mapping. It reports keys outside of known, unless known is nil. If n is
// no mapping, it reports that and returns nil.
func (r *reader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if err := wantKind(n, yaml.MappingNode); err != nil {
		r.mistake(n.Line, "%s %v", what, err)
		return nil
	}
	fields := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, value := n.Content[i], n.Content[i+1]
		key, err := scalar(k)
		if err != nil {
			r.mistake(k.Line, "a key %v", err)
			continue
		}
		if known != nil && !slices.Contains(known, key) {
			r.mistake(k.Line, "unknown key %q%s", Word(key), suggestKey(key, known))
			continue
		}
		if fields[key] != nil {
			first, _ := child(n, key)
			r.mistake(k.Line, "key %q is there already, at line %d: keep one of them",
				abbreviate(key), first.Line)
			continue
		}
		fields[key] = value
	}
	return fields
}

// child returns the first key with that text in a mapping, and its value, or nil if
// there is none.
func child(n *yaml.Node, text string) (key, value *yaml.Node) {
	for i := 0; n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == text {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// list returns the items of a list; it reports any other kind of node and returns none.
func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if err := wantKind(n, yaml.SequenceNode); err != nil {
		r.mistake(n.Line, "%s %v", what, err)
		return nil
	}
	return n.Content
}

// text stores a field in a string, if the mapping has it. A value that fails the check is
// reported, but stored as well.
func (r *reader) text(f map[string]*yaml.Node, key string, into *string, check func(string) error) {
	n := f[key]
	if n == nil {
		return
	}
	s, err := scalar(n)
	if err == nil {
		*into = s
		err = check(s)
	}
	if err != nil {
		r.mistake(n.Line, "%s %v", key, err)
	}
}

func (r *reader) port(n *yaml.Node, into *int) {
	if n == nil {
		return
	}
	s, err := scalar(n)
	if err != nil {
		r.mistake(n.Line, "port %v", err)
		return
	}
	// The text as written counts, because YAML would read 0x16 and 026 as other numbers.
	if n.ShortTag() != "!!int" || !isDecimal(s) {
		r.mistake(n.Line, "port %q is not a number: want 1 to 65535, without quotes", abbreviate(s))
		return
	}
	p, err := strconv.Atoi(s)
	if err != nil {
		p = -1 // out of range
	}
	if err := checkPort(p); err != nil {
		r.mistake(n.Line, "port %s: want 1 to 65535", abbreviate(s))
		return
	}
	*into = p
}

func isDecimal(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s == "0" || s != "" && s[0] != '0' && strings.Trim(s, "0123456789") == ""
}

// scalar returns the text of a value as it was written: the name 007 stays "007", the
// label true is "true".
func scalar(n *yaml.Node) (string, error) {
	if err := wantKind(n, yaml.ScalarNode); err != nil {
		return "", err
	}
	switch n.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return n.Value, nil
	case "!!null":
		return "", errors.New("has no value: give one or leave it out")
	case "!!merge":
		return "", errors.New(`"<<" is not supported: write the values out, or use defaults`)
	}
	return "", fmt.Errorf("has the tag %q, which is not supported: remove it", abbreviate(n.Tag))
}

// wantKind returns an error unless a node has the wanted kind. It refuses aliases as well,
// because with them a short text could expand without end.
func wantKind(n *yaml.Node, want yaml.Kind) error {
	standard := []string{"", "!", "!!map", "!!seq", "!!null"}
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("is the alias %q: aliases are not supported, write the value out",
			abbreviate("*"+n.Value))
	case n.Kind != want:
		return fmt.Errorf("is %s: want %s", kindName(n), kindName(&yaml.Node{Kind: want}))
	case want != yaml.ScalarNode && !slices.Contains(standard, n.ShortTag()):
		return fmt.Errorf("has the tag %q, which is not supported: remove it", abbreviate(n.Tag))
	}
	return nil
}

func kindName(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		return "empty"
	}
	return "a single value"
}

func suggestKey(key string, known []string) string {
	if s := suggest(key, known); s != "" {
		return s
	}
	return ": want one of " + strings.Join(known, ", ")
}

package windows

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// whole returns the fields of a file. A file without a known key is the wrong file, perhaps a link
// to one that the author may not read, so no message repeats any of its text.
func (r *reader) whole(root *yaml.Node, known ...string) map[string]*yaml.Node {
	if root.Kind == yaml.MappingNode && len(root.Content) > 0 && len(valuesOf(root, known...)) == 0 {
		r.mistake(root, "this is no file of %s: it has no known key: want %s", known[0],
			strings.Join(known, " or "))
		return nil
	}
	return r.fields(root, "the file", known)
}

// fields returns the fields of a mapping with known keys; if n is none, it reports that.
func (r *reader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.mistake(n, "%s: want a mapping with %s …", what, known[0])
		return nil
	}
	f := make(map[string]*yaml.Node, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.mistake(key, "a key must be a word: want one of %s", strings.Join(known, ", "))
		case !slices.Contains(known, key.Value):
			r.mistake(key, "unknown key %q: want one of %s", word(key.Value), strings.Join(known, ", "))
		case f[key.Value] != nil:
			r.mistake(key, "key %s is there twice", key.Value)
		default:
			f[key.Value] = n.Content[i+1]
			r.keys[n.Content[i+1]] = key.Value
		}
	}
	return f
}

func (r *reader) list(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind != yaml.SequenceNode:
		r.wrong(n, "want a list; [] is an empty one")
		return nil
	}
	for _, item := range n.Content {
		r.keys[item] = r.keys[n]
	}
	return n.Content
}

// wrong reports a mistake in the value of a key, and names the key.
func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	if key := r.keys[n]; key != "" {
		format = strings.ReplaceAll(key, "%", "%%") + ": " + format
	}
	r.mistake(n, format, args...)
}

// oneOrMore reads a list; a single value counts as a list of one.
func (r *reader) oneOrMore(n *yaml.Node) []*yaml.Node {
	if n != nil && n.Kind == yaml.ScalarNode {
		return []*yaml.Node{n}
	}
	return r.list(n)
}

// text reads a text; empty if n is nil.
func (r *reader) text(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" {
		r.wrong(n, "want a text")
		return ""
	}
	return n.Value
}

func (r *reader) texts(n *yaml.Node) []string {
	var all []string
	for _, item := range r.oneOrMore(n) {
		if s := r.text(item); s != "" {
			all = append(all, s)
		}
	}
	return all
}

func (r *reader) duration(n *yaml.Node) time.Duration {
	s := r.text(n)
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d%time.Second != 0 {
		r.wrong(n, "%q: want a time as 2h or 15m, in whole seconds", clip(s))
		return 0
	}
	return d
}

func (r *reader) wall(n *yaml.Node) Wall {
	s := r.text(n)
	if s == "" {
		return 0
	}
	w, err := ParseWall(s)
	if err != nil {
		r.wrong(n, "%v", err)
	}
	return w
}

// choice reads one of some words; the first is the default.
func (r *reader) choice(n *yaml.Node, words ...string) string {
	s := r.text(n)
	if s == "" {
		return words[0]
	}
	if !slices.Contains(words, s) {
		r.wrong(n, "%q: want %s", clip(s), strings.Join(words, " or "))
		return words[0]
	}
	return s
}

// nameMax bounds names, in bytes.
const nameMax = 253

// checkName allows the same names as for hosts, customers and groups.
func checkName(s string) error {
	ok := func(r rune) bool {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			r == '.' || r == '-' || r == '_'
	}
	if s == "" || len(s) > nameMax || s[0] == '-' || s[0] == '.' ||
		strings.ContainsFunc(s, func(r rune) bool { return !ok(r) }) {
		return fmt.Errorf("name %q: use letters, digits, '.', '-' and '_'", clip(s))
	}
	return nil
}

// flatten splits joined errors.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &joined):
		return joined.Unwrap()
	}
	return []error{err}
}

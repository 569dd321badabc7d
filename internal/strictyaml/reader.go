package strictyaml

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
)

// Reader reads the values of one file and collects its mistakes. A method that finds a mistake
// notes it and returns an empty value, so the caller can read on.
type Reader struct {
	File     string
	mistakes fleet.Mistakes
}

// New returns a reader of a file with a name.
func New(file string) *Reader { return &Reader{File: file} }

// Wrong notes a mistake.
func (r *Reader) Wrong(line int, format string, args ...any) {
	r.mistakes = append(r.mistakes, fleet.Mistake{File: r.File, Line: line,
		Text: fmt.Sprintf(format, args...)})
}

// Count returns the number of mistakes so far.
func (r *Reader) Count() int { return len(r.mistakes) }

// Err returns the mistakes in the order of their lines, of type fleet.Mistakes; nil if there are
// none.
func (r *Reader) Err() error {
	if len(r.mistakes) == 0 {
		return nil
	}
	r.mistakes.Sort([]string{r.File})
	return r.mistakes
}

// Document returns the only document of a file; nil if it cannot be read. want says for an empty
// file what should be in it.
func (r *Reader) Document(data []byte, want string) *yaml.Node {
	root, wrong := scripts.ReadYAML(r.File, want, data)
	for _, m := range wrong {
		r.Wrong(m.Line, "%s", m.Text)
	}
	if len(wrong) > 0 {
		return nil
	}
	return root
}

// Is reports whether a value is of a kind, and written out. want names the kind.
func (r *Reader) Is(n *yaml.Node, kind yaml.Kind, what, want string) bool {
	null := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
	switch {
	case n.Kind == yaml.AliasNode:
		r.Wrong(n.Line, "%s is the alias %s: write the value out", what, wording.Quote("*"+n.Value))
	case n.Anchor != "":
		r.Wrong(n.Line, "%s has the anchor %s: remove it", what, wording.Quote("&"+n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		r.Wrong(n.Line, "%s has the tag %s: remove it", what, wording.Quote(n.Tag))
	case null:
		r.Wrong(n.Line, "%s has no value: want %s", what, want)
	case n.Kind != kind:
		r.Wrong(n.Line, "%s is %s: want %s", what, kindOf(n), want)
	default:
		return true
	}
	return false
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

// Pair is a key of a mapping with its value.
type Pair struct{ Key, Value *yaml.Node }

// Pairs returns the keys of a mapping with their values, each key once.
func (r *Reader) Pairs(n *yaml.Node, what string) (list []Pair) {
	return r.pairs(n, what, "a mapping")
}

func (r *Reader) pairs(n *yaml.Node, what, want string) (list []Pair) {
	if !r.Is(n, yaml.MappingNode, what, want) {
		return nil
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !r.Is(key, yaml.ScalarNode, "a key of "+what, "a word") {
			continue
		}
		if line, twice := first[key.Value]; twice {
			r.Wrong(key.Line, "key %q is there already, at line %d: keep one of them",
				fleet.Word(key.Value), line)
			continue
		}
		first[key.Value] = key.Line
		list = append(list, Pair{key, value})
	}
	return list
}

// Fields returns the values of a mapping with known keys; nil if it is none.
func (r *Reader) Fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	want := "a mapping with " + wording.ClipList(strings.Join(known, ", "))
	if n.Kind != yaml.MappingNode {
		r.Is(n, yaml.MappingNode, what, want)
		return nil
	}
	pairs := r.pairs(n, what, want)
	if pairs == nil && len(n.Content) > 0 {
		return nil
	}
	fields := map[string]*yaml.Node{}
	for _, p := range pairs {
		if !slices.Contains(known, p.Key.Value) {
			r.Wrong(p.Key.Line, "unknown key %q of %s: %s", fleet.Word(p.Key.Value), what,
				scripts.Instead(p.Key.Value, known))
			continue
		}
		fields[p.Key.Value] = p.Value
	}
	return fields
}

// List returns the items of a list, which may be empty.
func (r *Reader) List(n *yaml.Node, what string) []*yaml.Node {
	if !r.Is(n, yaml.SequenceNode, what, "a list") {
		return nil
	}
	return n.Content
}

// Filled returns the items of a list that must have one at least; want says of what.
func (r *Reader) Filled(n *yaml.Node, what, want string) []*yaml.Node {
	items := r.List(n, what)
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Wrong(n.Line, "%s is empty: want %s", what, want)
	}
	return items
}

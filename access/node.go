package access

import (
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
	"muster/scripts"
)

// document returns the only document of a file; nil if it has mistakes, which are reported.
func (r *reader) document(data []byte, want string) *yaml.Node {
	root, wrong := scripts.ReadYAML(r.file, want, data)
	for _, m := range wrong {
		r.mistake(m.Line, "%s", m.Text)
	}
	if len(wrong) > 0 {
		return nil
	}
	return root
}

// pair is a key of a mapping with its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the keys of a mapping with their values, and reports keys that stand there twice.
func (r *reader) pairs(n *yaml.Node, what string) []pair {
	if err := checkKind(n, yaml.MappingNode, "a mapping"); err != nil {
		r.mistake(n.Line, "%s %v", what, err)
		return nil
	}
	var list []pair
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if err := checkKind(key, yaml.ScalarNode, "a word"); err != nil {
			r.mistake(key.Line, "a key %v", err)
			continue
		}
		if line, twice := seen[key.Value]; twice {
			r.mistake(key.Line, "key %q is there already, at line %d: keep one of them",
				fleet.Word(key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		list = append(list, pair{key, value})
	}
	return list
}

// fields returns the values of a mapping with known keys; nil if it is none.
func (r *reader) fields(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.pairs(n, what) // reports it
		return nil
	}
	fields := map[string]*yaml.Node{}
	for _, p := range r.pairs(n, what) {
		if !slices.Contains(known, p.key.Value) {
			r.mistake(p.key.Line, "unknown key %q%s", fleet.Word(p.key.Value), instead(p.key.Value, known))
			continue
		}
		fields[p.key.Value] = p.value
	}
	return fields
}

// list returns the items of a list.
func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if err := checkKind(n, yaml.SequenceNode, "a list"); err != nil {
		r.mistake(n.Line, "%s %v", what, err)
		return nil
	}
	return n.Content
}

// filled returns the items of a list that must have one at least.
func (r *reader) filled(n *yaml.Node, what, want string) []*yaml.Node {
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.mistake(n.Line, "%s is empty: want %s", what, want)
	}
	return r.list(n, what)
}

// texts returns the items of a list of texts; a single text counts as a list of one.
func (r *reader) texts(n *yaml.Node, what string) []*yaml.Node {
	items := []*yaml.Node{n}
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		items = r.filled(n, what, "at least one")
	}
	var list []*yaml.Node
	for _, item := range items {
		if _, ok := r.text(item, what); ok {
			list = append(list, item)
		}
	}
	return list
}

// text returns a text as it was written, and reports whether there is one.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	if err := checkKind(n, yaml.ScalarNode, "a text"); err != nil {
		r.mistake(n.Line, "%s %v", what, err)
		return "", false
	}
	return n.Value, true
}

// checkKind refuses values of another kind, and with them aliases, anchors and tags: each line
// must be understood by itself.
func checkKind(n *yaml.Node, want yaml.Kind, words string) error {
	switch {
	case n.Kind == yaml.AliasNode:
		return fmt.Errorf("is the alias %s: write the value out", wording.Quote("*"+n.Value))
	case n.Anchor != "":
		return fmt.Errorf("has the anchor %s: remove it", wording.Quote("&"+n.Anchor))
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("has the tag %s: remove it", wording.Quote(n.Tag))
	case n.Kind != want && n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return fmt.Errorf("has no value: want %s", words)
	case n.Kind != want:
		return fmt.Errorf("is %s: want %s", kindWords(n), words)
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null":
		return errors.New("has no value: give one, or leave it out")
	}
	return nil
}

func kindWords(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}

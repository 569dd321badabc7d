package manifest

import (
	"bytes"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"
)

// A builder writes a document, key by key. Values that are not said are left out.
type builder struct {
	kind string
	root yaml.Node
}

func begin(kind string) *builder {
	return &builder{kind: kind, root: yaml.Node{Kind: yaml.MappingNode}}
}

func scalar(text string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(text)
	return n
}

func (b *builder) put(key string, value *yaml.Node) {
	b.root.Content = append(b.root.Content, scalar(key), value)
}

func (b *builder) text(key, value string) {
	if value != "" {
		b.put(key, scalar(value))
	}
}

// other writes a text, unless it is the one that an absent key means.
func (b *builder) other(key, value, usual string) {
	if value != usual {
		b.text(key, value)
	}
}

// raw writes a word that is no text, such as true.
func (b *builder) raw(key, word string) {
	b.put(key, &yaml.Node{Kind: yaml.ScalarNode, Value: word})
}

func (b *builder) flag(key string, is bool) {
	if is {
		b.raw(key, "true")
	}
}

func (b *builder) list(key string, values []string) {
	if len(values) == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, v := range values {
		n.Content = append(n.Content, scalar(v))
	}
	b.put(key, n)
}

func (b *builder) pairs(key string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	n := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		n.Content = append(n.Content, scalar(name), scalar(values[name]))
	}
	b.put(key, n)
}

// String returns the document.
func (b *builder) String() string { return encode(b.kind, &b.root) }

// encode returns a mapping as a document of a kind.
func encode(kind string, n *yaml.Node) string {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	// A node of texts cannot fail, and a buffer takes everything.
	_ = e.Encode(n)
	_ = e.Close()
	return "kind: " + kind + "\n" + text.String()
}

package ansible

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// jsonDepth bounds the nesting of lists and objects.
const jsonDepth = 200

// jsonTree parses JSON to a tree with line numbers. A YAML parser would not do, because YAML
// does not accept all strings of JSON.
func jsonTree(data []byte) (root *yaml.Node, line int, err error) {
	t := jsonText{data: data, line: 1, d: json.NewDecoder(bytes.NewReader(data))}
	t.d.UseNumber()
	root, err = t.value(0)
	if err == nil {
		if _, err = t.d.Token(); err == nil {
			err = errors.New("something follows behind the end of the value")
		} else if errors.Is(err, io.EOF) {
			return root, 0, nil
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	return nil, t.here(), err
}

type jsonText struct {
	data []byte
	d    *json.Decoder
	seen int64 // bytes whose lines were counted
	line int
}

// here returns the line that the decoder has reached.
func (t *jsonText) here() int {
	now := min(t.d.InputOffset(), int64(len(t.data)))
	t.line += bytes.Count(t.data[t.seen:now], []byte("\n"))
	t.seen = now
	return t.line
}

func (t *jsonText) value(depth int) (*yaml.Node, error) {
	token, err := t.d.Token()
	if err != nil {
		return nil, err
	}
	if depth > jsonDepth {
		return nil, fmt.Errorf("more than %d lists and objects in each other", jsonDepth)
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: t.here()}
	switch v := token.(type) {
	case json.Delim:
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
		if v == '[' {
			n.Kind, n.Tag = yaml.SequenceNode, "!!seq"
		}
		for t.d.More() {
			part, err := t.value(depth + 1)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, part)
		}
		_, err = t.d.Token()
	case string:
		n.Tag, n.Value = "!!str", v
	case bool:
		n.Tag, n.Value = "!!bool", fmt.Sprint(v)
	case json.Number:
		n.Tag, n.Value = "!!int", v.String()
		if strings.ContainsAny(n.Value, ".eE") {
			n.Tag = "!!float"
		}
	default:
		n.Tag = "!!null"
	}
	return n, err
}

// readJSON reads a file in JSON form: the output of --list, or the groups of a YAML
// inventory written as JSON.
func (r *reader) readJSON(data []byte) {
	root, line, err := jsonTree(data)
	switch {
	case err != nil:
		r.mistake(line, "not valid JSON: %v", err)
	case root.Kind != yaml.MappingNode:
		r.mistake(root.Line, "the file is no JSON object: want groups")
	case isList(root):
		r.list(root)
	default:
		r.tree(root)
	}
}

// isList reports whether the file has the form of --list, where hosts are lists.
func isList(root *yaml.Node) bool {
	for i := 0; i+1 < len(root.Content); i += 2 {
		value := root.Content[i+1]
		if root.Content[i].Value == "_meta" || value.Kind == yaml.SequenceNode {
			return true
		}
		for j := 0; value.Kind == yaml.MappingNode && j+1 < len(value.Content); j += 2 {
			list := value.Content[j+1].Kind == yaml.SequenceNode
			if key := value.Content[j].Value; list && (key == "hosts" || key == "children") {
				return true
			}
		}
	}
	return false
}

// list reads the output of --list.
func (r *reader) list(root *yaml.Node) {
	var named []*yaml.Node
	var hostvars *yaml.Node
	for _, p := range r.pairs(root) {
		if p.key.Value != "_meta" {
			named = append(named, r.listGroup(p)...)
			continue
		}
		for _, m := range r.pairs(p.value) {
			if m.key.Value == "hostvars" && m.value.Kind == yaml.MappingNode {
				hostvars = m.value
			}
		}
	}
	if hostvars == nil {
		if len(named) > 0 {
			r.mistake(root.Line, "_meta.hostvars is missing, and nothing is asked for each host with "+
				`--host: print "_meta": {"hostvars": {}} if hosts have no variables`)
		}
		return
	}
	for _, p := range r.pairs(hostvars) {
		if r.hosts[p.key.Value] != nil { // Ansible ignores the variables of unknown hosts, too
			r.hostVars([]string{p.key.Value}, p.value)
		}
	}
}

// listGroup reads a group and returns the hosts that it names.
func (r *reader) listGroup(p pair) []*yaml.Node {
	g := r.group(p.key.Value)
	if p.value.Kind == yaml.SequenceNode {
		return r.listHosts(g, p.value)
	}
	if p.value.Kind != yaml.MappingNode {
		r.mistake(p.key.Line, "group %s: want a list of hosts, or an object", short(g.name))
		return nil
	}
	parts := r.pairs(p.value)
	if !slices.ContainsFunc(parts, func(m pair) bool {
		return slices.Contains([]string{"hosts", "children", "vars"}, m.key.Value)
	}) { // a host, with its variables
		parts = nil
		r.listHosts(g, &yaml.Node{Content: []*yaml.Node{p.key}})
		for _, v := range r.pairs(p.value) {
			r.setAll([]string{g.name}, v.key.Value, v.value)
		}
	}
	var named []*yaml.Node
	for _, m := range parts {
		switch {
		case m.key.Value == "hosts" && m.value.Kind == yaml.SequenceNode:
			named = append(named, r.listHosts(g, m.value)...)
		case m.key.Value == "vars" && m.value.Kind == yaml.MappingNode:
			for _, v := range r.pairs(m.value) {
				r.setAll([]string{g.name}, v.key.Value, v.value)
			}
		case m.key.Value == "children" && m.value.Kind == yaml.SequenceNode:
			r.listChildren(g, m.value)
		case slices.Contains([]string{"hosts", "children", "vars"}, m.key.Value):
			r.mistake(m.value.Line, "%s of group %s: want hosts and children as lists, vars as an object",
				m.key.Value, short(g.name))
		default:
			r.strayKey(m.key, g)
		}
	}
	return named
}

// listHosts adds hosts to a group. Their names are literal, without ranges.
func (r *reader) listHosts(g *group, list *yaml.Node) []*yaml.Node {
	for _, n := range list.Content {
		switch {
		case n.Kind != yaml.ScalarNode:
			r.mistake(n.Line, "a host of group %s is no name", short(g.name))
		case r.count >= hostsMax:
			r.mistake(n.Line, "the inventory names more than %d hosts", hostsMax)
			return list.Content
		default:
			r.count++
			r.addHost(n.Value, g, r.at(n), 0)
		}
	}
	return list.Content
}

func (r *reader) listChildren(g *group, list *yaml.Node) {
	for _, n := range list.Content {
		if n.Kind != yaml.ScalarNode {
			r.mistake(n.Line, "a child of group %s is no name", short(g.name))
			continue
		}
		if err := r.addChild(g, r.group(n.Value)); err != nil {
			r.mistake(n.Line, "%v", err)
		}
	}
}

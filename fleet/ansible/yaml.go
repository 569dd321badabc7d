package ansible

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	// visitsMax bounds the work that aliases can cause in a short file.
	visitsMax = 2 * hostsMax
	// depthMax bounds nested groups.
	depthMax = 100
)

// vaultHead begins each file that ansible-vault has encrypted as a whole.
const vaultHead = "$ANSIBLE_VAULT;"

// document returns the only YAML document of a file. It returns nil for an empty file, and
// for an invalid one, which it reports.
func (r *reader) document(data []byte) *yaml.Node {
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		r.mistake(yamlLine(err), "not valid YAML, here or just above: %s", yamlText(err))
		return nil
	}
	var second yaml.Node
	switch err := d.Decode(&second); {
	case err == nil:
		r.mistake(max(1, second.Line), "a second YAML document starts here: want one a file")
		return nil
	case !errors.Is(err, io.EOF):
		r.mistake(yamlLine(err), "the text behind the first YAML document is not valid YAML, here or "+
			"just above, and a file has only one document: %s", yamlText(err))
		return nil
	}
	return follow(doc.Content[0])
}

// yamlLine extracts the line from an error of the YAML library: "yaml: line 3: …".
func yamlLine(err error) int {
	line := 1
	_, _ = fmt.Sscanf(err.Error(), "yaml: line %d:", &line)
	return max(1, line)
}

func yamlText(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if _, after, ok := strings.Cut(rest, ": "); ok {
			return after
		}
	}
	return text
}

// follow resolves aliases.
func follow(n *yaml.Node) *yaml.Node {
	for i := 0; n.Kind == yaml.AliasNode && n.Alias != nil && i < depthMax; i++ {
		n = n.Alias
	}
	return n
}

// pair is a key of a mapping and its value.
type pair struct{ key, value *yaml.Node }

// pairs returns the pairs of a mapping with "<<" resolved and aliases followed. If a key is
// repeated, the last value counts, as for Ansible.
func (r *reader) pairs(n *yaml.Node) []pair { return r.pairsIn(n, 0) }

func (r *reader) pairsIn(n *yaml.Node, depth int) []pair {
	var list []pair
	index := map[string]int{}
	put := func(p pair, strong bool) {
		i, there := index[p.key.Value]
		switch {
		case !there:
			index[p.key.Value] = len(list)
			list = append(list, p)
		case strong:
			r.warnAt(r.file, p.key.Line, fmt.Sprintf("key %s is there already, at line %d: Ansible "+
				"takes the second one", short(p.key.Value), list[i].key.Line))
			list[i] = p
		}
	}
	var merged []pair
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := follow(n.Content[i]), follow(n.Content[i+1])
		switch {
		case key.Kind != yaml.ScalarNode:
			r.mistake(key.Line, "a key is not a single value")
		case key.ShortTag() == "!!merge" && depth < depthMax:
			merged = append(merged, r.merged(value, depth+1)...)
		default:
			put(pair{key, value}, true)
		}
	}
	for _, p := range merged {
		put(p, false)
	}
	return list
}

// merged returns the pairs that "<<" refers to, in a mapping or a list of mappings.
func (r *reader) merged(n *yaml.Node, depth int) []pair {
	switch n.Kind {
	case yaml.MappingNode:
		return r.pairsIn(n, depth)
	case yaml.SequenceNode:
		var all []pair
		for _, m := range n.Content {
			if m = follow(m); m.Kind == yaml.MappingNode && r.spend(m) {
				all = append(all, r.pairsIn(m, depth)...)
			}
		}
		return all
	}
	r.mistake(n.Line, `"<<" is not a mapping`)
	return nil
}

// spend counts a visit and reports whether the limit is not reached yet.
func (r *reader) spend(n *yaml.Node) bool {
	r.visits++
	if r.visits == visitsMax {
		r.mistake(n.Line, "aliases make more than %d groups, hosts and lists of the file", visitsMax)
	}
	return r.visits < visitsMax
}

// readYAML reads a file in YAML form: groups that have hosts, children and vars.
func (r *reader) readYAML(data []byte) {
	root := r.document(data)
	switch {
	case root == nil:
		if len(r.mistakes) == 0 {
			r.mistake(1, "the file is empty")
		}
		return
	case root.Kind != yaml.MappingNode:
		r.mistake(root.Line, "the file is no mapping: want groups, such as all, with hosts, "+
			"children and vars")
		return
	}
	if !hasGroup(root) {
		r.mistake(root.Line, "this is no inventory: want hosts of muster, or groups of Ansible "+
			"with hosts, children and vars")
		return
	}
	r.tree(root)
}

// hasGroup reports whether any value of the file could be a group. A file without one is
// probably not an inventory at all, so no message quotes it.
func hasGroup(root *yaml.Node) bool {
	for i := 0; i+1 < len(root.Content); i += 2 {
		value := follow(root.Content[i+1])
		key := root.Content[i].Value
		if isNull(value) || value.Kind == yaml.MappingNode || key == "plugin" || key == "all" {
			return true
		}
	}
	return len(root.Content) == 0
}

// tree reads the groups of a file.
func (r *reader) tree(root *yaml.Node) {
	for _, p := range r.pairs(root) {
		if p.key.Value == "plugin" && p.value.Kind == yaml.ScalarNode {
			r.mistake(p.key.Line, "this configures the inventory plugin %s, which is not run here: "+
				"list what `ansible-inventory --list` prints, or a script that calls it",
				short(p.value.Value))
			return
		}
		r.yamlGroup(p, 0)
	}
}

// yamlGroup reads one group. It returns nil if the value cannot be a group.
func (r *reader) yamlGroup(p pair, depth int) *group {
	if isNull(p.value) {
		return r.group(p.key.Value)
	}
	if p.value.Kind != yaml.MappingNode {
		r.mistake(p.key.Line, "group %s: want a mapping with hosts, children and vars",
			short(p.key.Value))
		return nil
	}
	g := r.group(p.key.Value)
	if depth > depthMax || !r.spend(p.key) {
		return g
	}
	for _, part := range r.pairs(p.value) {
		name, value := part.key.Value, part.value
		if !slices.Contains([]string{"hosts", "children", "vars"}, name) {
			r.strayKey(part.key, g)
			continue
		}
		members, ok := r.members(value)
		if !ok {
			r.mistake(value.Line, "%s of group %s: want a mapping, with a ':' behind each name", name,
				short(g.name))
			continue
		}
		r.yamlPart(g, name, members, depth)
	}
	return g
}

// strayKey warns of a key in a group that Ansible ignores.
func (r *reader) strayKey(key *yaml.Node, g *group) {
	r.warnAt(r.file, key.Line, fmt.Sprintf("key %s of group %s is not used: want hosts, children and "+
		"vars", short(key.Value), short(g.name)))
}

// members returns the pairs in a part of a group; a single word is a name without a value.
func (r *reader) members(n *yaml.Node) ([]pair, bool) {
	switch {
	case isNull(n):
		return nil, true
	case n.Kind == yaml.MappingNode:
		return r.pairs(n), true
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str":
		return []pair{{n, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: n.Line}}}, true
	}
	return nil, false
}

func (r *reader) yamlPart(g *group, part string, members []pair, depth int) {
	for _, m := range members {
		switch part {
		case "vars":
			r.setAll([]string{g.name}, m.key.Value, m.value)
		case "children":
			child := r.yamlGroup(m, depth+1)
			if child == nil {
				continue
			}
			if err := r.addChild(g, child); err != nil {
				r.mistake(m.key.Line, "%v", err)
			}
		case "hosts":
			names := r.addHosts(m.key.Value, g, m.key)
			r.hostVars(names, m.value)
		}
	}
}

// hostVars assigns the variables of a mapping to hosts.
func (r *reader) hostVars(names []string, vars *yaml.Node) {
	switch {
	case len(names) == 0 || isNull(vars) || !r.spend(vars):
	case vars.Kind != yaml.MappingNode:
		r.mistake(vars.Line, "host %s: want a mapping of variables", short(names[0]))
	default:
		for _, v := range r.pairs(vars) {
			r.setAll(names, v.key.Value, v.value)
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// variables reads a file of group_vars or host_vars.
func (r *reader) variables(data []byte, into settings) {
	if bytes.HasPrefix(data, []byte(vaultHead)) {
		r.noteAt(r.file, 1, "the file is encrypted, so its variables are not known: if a host's address "+
			"or login is among them, give that in plain text")
		return
	}
	root := r.document(data)
	if root == nil || isNull(root) {
		return
	}
	if root.Kind != yaml.MappingNode {
		r.mistake(root.Line, "the file is no mapping: want variables")
		return
	}
	for _, p := range r.pairs(root) {
		into[p.key.Value] = r.at(p.value)
	}
}

package fleet

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// YAML writes the inventory as a file that Parse reads. Values that all hosts share become
// defaults. Hosts without keys and without a file for them get the file knownHosts. Jump
// hosts that are not hosts become hosts.
func (v *Inventory) YAML(knownHosts string) ([]byte, error) {
	all := v.Hosts()
	for _, h := range v.Strangers() {
		all = append(all, Host{Name: h.Name, Address: h.Address, Port: h.Port, User: h.User, Key: h.Key,
			HostKeys: h.HostKeys, Zone: DefaultZone, Fence: FenceAuto, HostCert: h.HostCert,
			Access: Access{Certificate: h.Certificate, Profile: h.Profile}})
	}
	lists := make([][]fieldNode, len(all))
	for i := range all {
		var err error
		if lists[i], err = v.fieldNodes(&all[i], knownHosts); err != nil {
			return nil, err
		}
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	shared := common(lists)
	if len(shared) > 0 {
		put(root, "defaults", mapping(shared))
	}
	hosts := &yaml.Node{Kind: yaml.SequenceNode}
	for i := range lists {
		own := slices.DeleteFunc(lists[i], func(f fieldNode) bool {
			return slices.ContainsFunc(shared, func(s fieldNode) bool { return s.name == f.name })
		})
		n := mapping(append([]fieldNode{{"name", text(all[i].Name)}}, own...))
		if labels := all[i].Labels; len(labels) > 0 {
			flow := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
			for _, key := range sortedKeys(labels) {
				put(flow, key, text(labels[key]))
			}
			put(n, "labels", flow)
		}
		hosts.Content = append(hosts.Content, n)
	}
	put(root, "hosts", hosts)
	if len(v.limits) > 0 {
		put(root, "limits", v.limitsNode())
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, fmt.Errorf("inventory as YAML: %w", err)
	}
	return out.Bytes(), nil
}

// fieldNode is a field of a host as it appears in a file.
type fieldNode struct {
	name string
	node *yaml.Node
}

// fieldNodes returns the fields of a host whose values differ from the built-in defaults,
// except name and labels.
func (v *Inventory) fieldNodes(h *Host, knownHosts string) ([]fieldNode, error) {
	usual := map[string]string{"port": "22", "user": "root", "zone": DefaultZone,
		"fence": string(FenceAuto)}
	var list []fieldNode
	for name, value := range values(h, hostFieldList()) {
		name := fileKey(name)
		switch x := value.(type) {
		case string:
			if x != usual[name] {
				list = append(list, fieldNode{name, text(x)})
			}
		case Fence:
			if string(x) != usual[name] {
				list = append(list, fieldNode{name, text(string(x))})
			}
		case int:
			if n := strconv.Itoa(x); n != usual[name] {
				list = append(list, fieldNode{name, &yaml.Node{Kind: yaml.ScalarNode, Value: n}})
			}
		case []string:
			if name == "host_keys" {
				list = append(list, v.keysNode(h, knownHosts))
			} else if len(x) > 0 {
				list = append(list, fieldNode{name, texts(x)})
			}
		case []Hop:
			if len(x) > 0 {
				list = append(list, fieldNode{name, texts(wayNames(x))})
			}
		default:
			return nil, fmt.Errorf("host %s: %s cannot be written", h.Name, name)
		}
	}
	return list, nil
}

// keysNode returns the field that identifies a host: its keys or a known_hosts file.
func (v *Inventory) keysNode(h *Host, knownHosts string) fieldNode {
	switch file := v.KnownHosts(h.Name); {
	case len(h.HostKeys) == 0:
		return fieldNode{"known_hosts", text(cmp.Or(file, knownHosts))}
	case len(h.HostKeys) == 1:
		return fieldNode{"host_key", text(h.HostKeys[0])}
	}
	return fieldNode{"host_keys", texts(h.HostKeys)}
}

// common returns the fields with the same value on all hosts that defaults may set.
func common(lists [][]fieldNode) []fieldNode {
	var shared []fieldNode
	if len(lists) < 2 {
		return nil
	}
	for _, f := range lists[0] {
		if slices.Contains(commonFields(), f.name) && f.node.Kind == yaml.ScalarNode &&
			!slices.ContainsFunc(lists, func(list []fieldNode) bool {
				return !slices.ContainsFunc(list, func(g fieldNode) bool {
					return g.name == f.name && g.node.Value == f.node.Value
				})
			}) {
			shared = append(shared, f)
		}
	}
	return shared
}

func (v *Inventory) limitsNode() *yaml.Node {
	limits := &yaml.Node{Kind: yaml.MappingNode}
	for _, l := range v.limits {
		one := &yaml.Node{Kind: yaml.MappingNode, Style: yaml.FlowStyle}
		put(one, "max", &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.Itoa(l.Max)})
		put(one, "zone", text(l.Zone))
		if l.Customer != "" {
			put(one, "customer", text(l.Customer))
		}
		put(limits, l.Name, one)
	}
	return limits
}

func mapping(fields []fieldNode) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		put(m, f.name, f.node)
	}
	return m
}

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, text(key), value)
}

func text(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
}

func texts(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range list {
		n.Content = append(n.Content, text(s))
	}
	return n
}

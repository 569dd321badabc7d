package ansible

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/wording"
)

// entries converts the hosts of Ansible to hosts of muster.
func (r *reader) entries(o Options) []fleet.Entry {
	r.checkOwn()
	bases := map[string]*base{}
	list := make([]fleet.Entry, 0, len(r.order))
	for _, h := range r.order {
		if deep := tooDeep(h); deep != nil {
			r.mistakeAt(h.file, h.line, fmt.Sprintf("host %s is in group %s, which is a part of %d "+
				"groups in each other: at most %d", short(h.name), short(deep.name), deep.depth, nestedMax))
			continue
		}
		key := baseKey(h)
		b := bases[key]
		if b == nil {
			b = r.base(h)
			bases[key] = b
		}
		m := maker{reader: r, lookup: lookup{h, b.vars}, home: o.Home}
		if e, ok := m.entry(b.labels); ok {
			list = append(list, e)
		}
	}
	r.resolveJumps(list)
	return list
}

// nestedMax bounds the nesting of groups, counted from all. Each group becomes a label of the
// hosts in it, and a host can have 64 labels.
const nestedMax = 64

// tooDeep returns a group of the host that is nested deeper than nestedMax, or nil.
func tooDeep(h *host) *group {
	for _, g := range h.groups {
		if g.depth > nestedMax {
			return g
		}
	}
	return nil
}

// base holds the values that all hosts with the same groups share.
type base struct {
	vars   settings
	labels []string // of the groups
}

func baseKey(h *host) string {
	names := make([]string, len(h.groups))
	for i, g := range h.groups {
		names[i] = g.name
	}
	slices.Sort(names)
	return strings.Join(names, "\x00")
}

func (r *reader) base(h *host) *base {
	groups := r.groupsOf(h)
	b := &base{vars: r.inherited(groups)}
	for _, g := range groups {
		if g.name == restGroup {
			continue
		}
		label := GroupLabel(g.name)
		if err := fleet.CheckLabel(label, "true"); err != nil {
			r.noteAt(h.file, h.line, fmt.Sprintf("group %s cannot be a label, so selectors do not know "+
				"it: %v", short(g.name), err))
			continue
		}
		b.labels = append(b.labels, label)
	}
	return b
}

// GroupLabel returns the label that hosts of a group have, with the value true.
func GroupLabel(group string) string { return fleet.GroupPrefix + group }

// ownVars returns the variables that only muster reads.
func ownVars() []string {
	return []string{"muster_customer", "muster_zone", "muster_group", "muster_fence",
		"muster_host_key", "muster_host_keys", "muster_known_hosts", "muster_labels"}
}

// checkOwn reports variables whose names resemble those that muster reads.
func (r *reader) checkOwn() {
	known, meant := ownVars(), map[string]string{}
	check := func(vars settings) {
		for key, v := range vars {
			if strings.HasPrefix(key, "muster_") && !slices.Contains(known, key) {
				r.mistakeAt(v.file, v.node.Line, fmt.Sprintf("unknown variable %s: want one of %s",
					short(key), strings.Join(known, ", ")))
			}
			word, known := meant[key]
			if !known {
				word = misspelt(key)
				meant[key] = word
			}
			if word != "" {
				r.warnAt(v.file, v.node.Line, fmt.Sprintf("variable %s is not used: did you mean %s?",
					short(key), word))
			}
		}
	}
	for _, g := range r.groups {
		check(g.vars)
		check(g.files)
	}
	for _, h := range r.order {
		check(h.vars)
		check(h.files)
	}
}

// theirVars returns the variables of Ansible that muster reads, and some with similar names.
func theirVars() []string {
	whether, who, how := becomeVars()
	return append(slices.Concat(argsVars(), whether, who, how),
		"ansible_host", "ansible_port", "ansible_user", "ansible_connection",
		"ansible_private_key_file", "ansible_ssh_host", "ansible_ssh_port", "ansible_ssh_user",
		"ansible_ssh_private_key_file", "ansible_scp_extra_args", "ansible_sftp_extra_args",
		"ansible_group_priority")
}

// misspelt returns the variable of Ansible that an unknown name resembles. It is empty for
// names that users may have chosen for themselves.
func misspelt(key string) string {
	if !strings.HasPrefix(key, "ansible") || slices.Contains(theirVars(), key) {
		return ""
	}
	return wording.Misspelt(key, theirVars())
}

// maker builds one host.
type maker struct {
	*reader
	lookup
	home string
}

// reached returns the values of ansible_connection that mean SSH.
func reached() []string {
	return []string{"", "ssh", "smart", "paramiko", "paramiko_ssh", "network_cli", "libssh"}
}

// entry returns the host, unless Ansible reaches it by other means than SSH.
func (m *maker) entry(labels []string) (fleet.Entry, bool) {
	h := m.lookup.host
	if v, ok := m.get("ansible_connection"); ok {
		kind, ok := m.text("ansible_connection", v)
		if i := strings.LastIndexByte(kind, '.'); ok && !slices.Contains(reached(), kind[i+1:]) {
			m.noteAt(v.file, v.node.Line, fmt.Sprintf("hosts with ansible_connection %s are left out: "+
				"muster reaches hosts over SSH", short(kind)))
			return fleet.Entry{}, false
		}
	}
	e := fleet.Entry{File: h.file, Line: h.line, Host: fleet.Host{Name: h.name, Address: h.name,
		Port: 22, User: "root", Zone: fleet.DefaultZone, Fence: fleet.FenceAuto}}
	m.login(&e)
	m.own(&e)
	m.keys(&e)
	m.connection(&e)
	m.labels(&e, labels)
	return e, true
}

// text returns the value of a variable. It reports a value that only Ansible could compute.
func (m *maker) text(name string, v setting) (string, bool) {
	text, err := plain(v.node)
	if err != nil {
		m.mistakeAt(v.file, v.node.Line, fmt.Sprintf("%s %v", name, err))
		return "", false
	}
	return text, text != ""
}

// plain returns the text of a value that needs no computation and no decryption.
func plain(n *yaml.Node) (string, error) {
	switch {
	case n.Tag == "!vault" || strings.HasPrefix(n.Value, vaultHead) || hasKey(n, "__ansible_vault"):
		return "", fmt.Errorf("is encrypted by ansible-vault: give it in plain text")
	case hasKey(n, "__ansible_unsafe"):
		return plain(n.Content[1])
	case n.Kind == yaml.SequenceNode:
		return "", fmt.Errorf("is a list: want one value")
	case n.Kind != yaml.ScalarNode:
		return "", fmt.Errorf("is a mapping: want one value")
	case isNull(n):
		return "", nil
	case strings.Contains(n.Value, "{{") || strings.Contains(n.Value, "{%"):
		return "", fmt.Errorf("is a template, %s: templates are not worked out here, write the value",
			short(n.Value))
	}
	return n.Value, nil
}

func hasKey(n *yaml.Node, key string) bool {
	return n.Kind == yaml.MappingNode && len(n.Content) >= 2 && n.Content[0].Value == key
}

// field sets a field to the value of the last given variable that the host has. An invalid
// value is a mistake.
func (m *maker) field(field string, into *string, names ...string) {
	for _, name := range slices.Backward(names) {
		v, ok := m.get(name)
		if !ok {
			continue
		}
		text, ok := m.text(name, v)
		if !ok {
			return
		}
		if field == "key" {
			text = m.fromHome(text)
		}
		if err := fleet.CheckField(field, text); err != nil {
			m.mistakeAt(v.file, v.node.Line, fmt.Sprintf("%s %v", name, err))
			return
		}
		*into = text
		return
	}
}

func (m *maker) fromHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && m.home != "" {
		return strings.TrimSuffix(m.home, "/") + "/" + rest
	}
	return path
}

// login reads the address of the host and the login.
func (m *maker) login(e *fleet.Entry) {
	m.field("address", &e.Host.Address, "ansible_host", "ansible_ssh_host")
	m.field("user", &e.Host.User, "ansible_user", "ansible_ssh_user")
	m.field("key", &e.Host.Key, "ansible_private_key_file", "ansible_ssh_private_key_file")
	port := ""
	m.field("port", &port, "ansible_port", "ansible_ssh_port")
	if port != "" {
		e.Host.Port, _ = strconv.Atoi(port) // field has checked it
	}
	for _, name := range []string{"ansible_password", "ansible_ssh_pass", "ansible_ssh_password"} {
		if v, ok := m.get(name); ok {
			m.noteAt(v.file, v.node.Line, name+" is not used: muster logs in with keys")
		}
	}
}

// own reads the fields that only muster has.
func (m *maker) own(e *fleet.Entry) {
	m.field("customer", &e.Host.Customer, "muster_customer")
	m.field("zone", &e.Host.Zone, "muster_zone")
	m.field("group", &e.Host.Group, "muster_group")
	fence := string(e.Host.Fence)
	m.field("fence", &fence, "muster_fence")
	e.Host.Fence = fleet.Fence(fence)
}

// keys reads the keys that identify the host.
func (m *maker) keys(e *fleet.Entry) {
	for _, name := range []string{"muster_host_key", "muster_host_keys"} {
		v, ok := m.get(name)
		if !ok {
			continue
		}
		nodes := []*yaml.Node{v.node}
		if v.node.Kind == yaml.SequenceNode {
			nodes = v.node.Content
		}
		for _, n := range nodes {
			text, ok := m.text(name, setting{follow(n), v.file})
			if !ok {
				continue
			}
			if err := fleet.CheckField("host_key", text); err != nil {
				m.mistakeAt(v.file, n.Line, fmt.Sprintf("%s %v", name, err))
				continue
			}
			e.Host.HostKeys = append(e.Host.HostKeys, text)
		}
	}
	if len(e.Host.HostKeys) == 0 {
		m.field("known_hosts", &e.KnownHosts, "muster_known_hosts")
	}
}

// labels sets the labels of the host's groups and of muster_labels. A mapping in
// muster_labels holds labels; a list, or a text with commas, holds names of variables.
func (m *maker) labels(e *fleet.Entry, groups []string) {
	labels := make(map[string]string, len(groups))
	for _, label := range groups {
		labels[label] = "true"
	}
	becomeLabel(m.become(&e.Host), labels)
	if v, ok := m.get("muster_labels"); ok {
		m.wanted(v, labels)
	}
	if len(labels) > 0 {
		e.Host.Labels = labels
	}
}

func (m *maker) wanted(v setting, labels map[string]string) {
	switch {
	case v.node.Kind == yaml.MappingNode && !hasKey(v.node, "__ansible_vault"):
		for _, p := range m.pairs(v.node) {
			m.label(p.key.Value, setting{p.value, v.file}, labels)
		}
		return
	case v.node.Kind == yaml.SequenceNode:
		for _, n := range v.node.Content {
			m.variable(setting{follow(n), v.file}, labels)
		}
		return
	}
	text, _ := m.text("muster_labels", v)
	for name := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		m.variable(setting{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name,
			Line: v.node.Line}, v.file}, labels)
	}
}

// variable adds a label with the name and value of a variable, if the host has that variable.
func (m *maker) variable(name setting, labels map[string]string) {
	text, ok := m.text("muster_labels", name)
	if !ok {
		return
	}
	if v, ok := m.get(text); ok {
		m.label(text, v, labels)
	}
}

func (m *maker) label(key string, v setting, labels map[string]string) {
	value, ok := m.text("label "+short(key), v)
	if !ok {
		return
	}
	if err := fleet.CheckLabel(key, value); err != nil {
		m.mistakeAt(v.file, v.node.Line, err.Error())
		return
	}
	labels[key] = value
}

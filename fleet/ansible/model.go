package ansible

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
)

// setting is the value of a variable, and where it stands.
type setting struct {
	node *yaml.Node
	file string
}

type settings map[string]setting

// group is a group of Ansible. Those of muster are redundancy groups.
type group struct {
	name     string
	vars     settings // of the inventory
	files    settings // of group_vars
	parents  []*group
	children []*group
	depth    int // the longest way from all
	priority int // ansible_group_priority; 1 if it is not said
}

type host struct {
	name   string
	file   string // where it stands first
	line   int
	vars   settings // of the inventory
	files  settings // of host_vars
	groups []*group // in which it stands itself
}

// model is an inventory as Ansible has it.
type model struct {
	groups map[string]*group
	hosts  map[string]*host
	order  []*host // as they came
}

const (
	allGroup  = "all"
	restGroup = "ungrouped"
)

func newModel() *model {
	m := &model{groups: map[string]*group{}, hosts: map[string]*host{}}
	m.group(allGroup)
	m.addChild(m.group(allGroup), m.group(restGroup))
	return m
}

// group is the group of that name, from now on there is one.
func (m *model) group(name string) *group {
	g := m.groups[name]
	if g == nil {
		g = &group{name: name, vars: settings{}, files: settings{}, priority: 1}
		m.groups[name] = g
	}
	return g
}

// addHost puts a host into a group, from now on there is one. A port counts for a
// new host only.
func (m *model) addHost(name string, g *group, at setting, port int) *host {
	h := m.hosts[name]
	if h == nil {
		h = &host{name: name, file: at.file, line: at.node.Line, vars: settings{}, files: settings{}}
		m.hosts[name] = h
		m.order = append(m.order, h)
		if port != 0 {
			h.vars["ansible_port"] = setting{&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!int",
				Value: strconv.Itoa(port), Line: at.node.Line}, at.file}
		}
	}
	if g != nil && !slices.Contains(h.groups, g) {
		h.groups = append(h.groups, g)
	}
	return h
}

// set gives a variable to what has that name: to the group, if a group and a host
// have it both.
func (m *model) set(name, key string, v setting) error {
	g := m.groups[name]
	switch {
	case g == nil:
		m.hosts[name].vars[key] = v
		return nil
	case key != "ansible_group_priority":
		g.vars[key] = v
		return nil
	}
	n, err := strconv.Atoi(v.node.Value)
	if err != nil {
		return fmt.Errorf("ansible_group_priority %s is not a number", short(v.node.Value))
	}
	g.priority = n
	return nil
}

// addChild makes a group a part of another.
func (m *model) addChild(parent, child *group) error {
	switch {
	case slices.Contains(child.parents, parent):
		return nil
	case child.name == allGroup:
		return errors.New("group all is a part of no other")
	case parent == child || isAbove(child, parent):
		return fmt.Errorf("group %s would be a part of itself, by way of %s", short(child.name),
			short(parent.name))
	}
	child.parents = append(child.parents, parent)
	parent.children = append(parent.children, child)
	return nil
}

// isAbove reports whether a group has another among its parts, at whatever depth. It looks
// from both ends at once, as far as the shorter way goes: one end of a long chain that is
// read group by group is mostly near, and 30,000 groups in each other cost no more than
// 30,000 beside each other.
func isAbove(top, bottom *group) bool {
	down := search{todo: []*group{top}, seen: map[*group]bool{top: true},
		next: func(g *group) []*group { return g.children }}
	up := search{todo: []*group{bottom}, seen: map[*group]bool{bottom: true},
		next: func(g *group) []*group { return g.parents }}
	for len(down.todo) > 0 && len(up.todo) > 0 {
		if down.step(bottom) || up.step(top) {
			return true
		}
	}
	return false
}

// search is a walk over groups, one at a time.
type search struct {
	todo []*group
	seen map[*group]bool
	next func(*group) []*group
}

// step looks at what follows one group, and reports whether the wanted one is there.
func (s *search) step(want *group) bool {
	g := s.todo[len(s.todo)-1]
	s.todo = s.todo[:len(s.todo)-1]
	for _, n := range s.next(g) {
		if n == want {
			return true
		}
		if !s.seen[n] {
			s.seen[n] = true
			s.todo = append(s.todo, n)
		}
	}
	return false
}

// ancestors are the groups that a group is a part of, each once.
func ancestors(of ...*group) []*group {
	seen := map[*group]bool{}
	var all []*group
	for todo := slices.Clone(of); len(todo) > 0; {
		g := todo[0]
		todo = todo[1:]
		for _, p := range g.parents {
			if !seen[p] {
				seen[p] = true
				all, todo = append(all, p), append(todo, p)
			}
		}
	}
	return all
}

// settle ends the reading: every group is a part of all, and no host is ungrouped
// that is in a group.
func (m *model) settle() {
	all, rest := m.groups[allGroup], m.groups[restGroup]
	for _, g := range m.groups {
		if g != all && len(g.parents) == 0 {
			g.parents = append(g.parents, all)
		}
	}
	for _, g := range m.groups {
		g.depth = -1
	}
	for _, g := range m.groups {
		m.measure(g)
	}
	for _, h := range m.order {
		if slices.ContainsFunc(h.groups, func(g *group) bool { return g != all && g != rest }) {
			h.groups = slices.DeleteFunc(h.groups, func(g *group) bool { return g == rest })
		} else if !slices.Contains(h.groups, rest) {
			h.groups = append(h.groups, rest)
		}
	}
}

// measure finds the depth of a group. There are no rings: addChild refuses them.
func (m *model) measure(g *group) int {
	if g.depth >= 0 {
		return g.depth
	}
	depth := 0
	for _, p := range g.parents {
		depth = max(depth, m.measure(p)+1)
	}
	g.depth = depth
	return depth
}

// groupsOf are all groups of a host but all, the weakest first: deeper ones are
// stronger, then those with a higher priority, then the later ones of the alphabet.
func (m *model) groupsOf(h *host) []*group {
	seen := map[*group]bool{m.groups[allGroup]: true}
	var list []*group
	for _, g := range append(slices.Clone(h.groups), ancestors(h.groups...)...) {
		if !seen[g] {
			seen[g] = true
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b *group) int {
		return cmp.Or(a.depth-b.depth, cmp.Compare(a.priority, b.priority), cmp.Compare(a.name, b.name))
	})
	return list
}

// inherited are the variables that groups give, weakest first: of the inventory
// all and then the groups, then the same of group_vars.
func (m *model) inherited(groups []*group) settings {
	vars := settings{}
	all := m.groups[allGroup]
	maps.Copy(vars, all.vars)
	for _, g := range groups {
		maps.Copy(vars, g.vars)
	}
	maps.Copy(vars, all.files)
	for _, g := range groups {
		maps.Copy(vars, g.files)
	}
	return vars
}

// lookup finds variables of one host.
type lookup struct {
	host   *host
	groups settings
}

func (l lookup) get(key string) (setting, bool) {
	for _, vars := range []settings{l.host.files, l.host.vars, l.groups} {
		if v, ok := vars[key]; ok {
			return v, true
		}
	}
	return setting{}, false
}

// reader reads the files of one inventory.
type reader struct {
	*model
	file     string          // the one being read
	count    int             // hosts that were named so far
	visits   int             // of parts of YAML files
	jumps    map[string]jump // of hosts, by name
	hops     []fleet.Hop     // jump hosts that are no hosts
	mistakes fleet.Mistakes
	warnings fleet.Mistakes // what Ansible takes, and nobody means
	notes    fleet.Mistakes
	said     map[fleet.Mistake]bool
}

// mistake and note say a thing once: a group gives it to many hosts.
func (r *reader) mistake(line int, format string, args ...any) {
	r.mistakeAt(r.file, line, fmt.Sprintf(format, args...))
}

func (r *reader) mistakeAt(file string, line int, text string) {
	if m := (fleet.Mistake{File: file, Line: line, Text: text}); r.first(m) {
		r.mistakes = append(r.mistakes, m)
	}
}

func (r *reader) warnAt(file string, line int, text string) {
	if m := (fleet.Mistake{File: file, Line: line, Text: text}); r.first(m) {
		r.warnings = append(r.warnings, m)
	}
}

func (r *reader) noteAt(file string, line int, text string) {
	if m := (fleet.Mistake{File: file, Line: line, Text: text}); r.first(m) {
		r.notes = append(r.notes, m)
	}
}

func (r *reader) first(m fleet.Mistake) bool {
	if r.said[m] {
		return false
	}
	r.said[m] = true
	return true
}

// at is a place of the file being read.
func (r *reader) at(n *yaml.Node) setting { return setting{n, r.file} }

// addHosts reads a host pattern into a group and returns the names.
func (r *reader) addHosts(pattern string, g *group, n *yaml.Node) []string {
	names, port, err := expand(pattern)
	if err == nil && r.count+len(names) > hostsMax {
		err = fmt.Errorf("the inventory names more than %d hosts", hostsMax)
	}
	if err != nil {
		r.mistake(n.Line, "%v", err)
		return nil
	}
	r.count += len(names)
	for _, name := range names {
		r.addHost(name, g, r.at(n), port)
	}
	return names
}

func (r *reader) setAll(names []string, key string, value *yaml.Node) {
	for _, name := range names {
		if err := r.set(name, key, r.at(value)); err != nil {
			r.mistake(value.Line, "%v", err)
		}
	}
}

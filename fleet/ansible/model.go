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

// setting is the value of a variable with its position.
type setting struct {
	node *yaml.Node
	file string
}

type settings map[string]setting

// group is a group of Ansible; a group of muster is a redundancy group.
type group struct {
	name     string
	vars     settings // from the inventory
	files    settings // from group_vars
	parents  []*group
	children []*group
	depth    int // the longest path from all
	priority int // ansible_group_priority, 1 by default
}

type host struct {
	name   string
	file   string // position of its first mention
	line   int
	vars   settings // from the inventory
	files  settings // from host_vars
	groups []*group // groups that list it directly
}

// model is an inventory in the terms of Ansible.
type model struct {
	groups map[string]*group
	hosts  map[string]*host
	order  []*host // in the order of the files
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

// group returns the group of that name and creates it if necessary.
func (m *model) group(name string) *group {
	g := m.groups[name]
	if g == nil {
		g = &group{name: name, vars: settings{}, files: settings{}, priority: 1}
		m.groups[name] = g
	}
	return g
}

// addHost adds a host to a group and creates the host if necessary. The port only counts
// for a new host.
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

// set assigns a variable to the group or host of that name, and to the group if there are
// both.
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

// addChild makes one group a child of another.
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

// isAbove reports whether bottom is a descendant of top. It searches from both ends in turn and
// stops when either end is exhausted. Files usually list a long chain of groups in order, so
// one end of it is short; 30,000 nested groups therefore cost no more than 30,000 groups side
// by side.
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

// search walks over groups, one group each step.
type search struct {
	todo []*group
	seen map[*group]bool
	next func(*group) []*group
}

// step visits the neighbours of one group and reports whether the wanted one is among them.
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

// ancestors returns all groups above the given ones, each once.
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

// settle finishes reading: every group becomes a descendant of all, and only hosts without
// a group stay in ungrouped.
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

// measure computes the depth of a group. There are no cycles, because addChild refuses them.
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

// groupsOf returns all groups of a host except all, in ascending precedence: by depth, then by
// priority, then by name.
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

// inherited returns the variables from groups. Later sources win: all and the groups in the
// inventory, then all and the groups in group_vars.
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
	file     string          // the file being read
	count    int             // hosts named so far
	visits   int             // visited parts of YAML files
	jumps    map[string]jump // by the name of the host
	hops     []fleet.Hop     // jump hosts that are not hosts of the inventory
	mistakes fleet.Mistakes
	warnings fleet.Mistakes // valid for Ansible, but probably a mistake
	notes    fleet.Mistakes
	said     map[fleet.Mistake]bool
}

// mistake reports a mistake once, even if a group passes it on to many hosts.
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

// at returns a setting in the current file.
func (r *reader) at(n *yaml.Node) setting { return setting{n, r.file} }

// addHosts adds the hosts of a pattern to a group and returns their names.
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

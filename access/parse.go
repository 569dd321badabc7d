package access

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"muster/fleet"
	"muster/internal/strictyaml"
	"muster/internal/wording"
	"muster/scripts"
)

// atLeastOne says what an empty list lacks.
const atLeastOne = "at least one"

// grantsMax bounds the grants of a policy: each role counts once for each line that gives it.
const grantsMax = 20_000

// Parse reads the file that says who may do what:
//
//	roles:                       # beside the built-in ones
//	  acme-operator:
//	    - verbs: [see, plan, run, order]
//	      runbooks: [firewall, "dns*"]   # absent: all
//	      hosts: customer=acme   # a selector; absent: all
//	  reader: [see]              # verbs alone: for all runbooks, on all hosts
//	who:
//	  - principal: os:alice      # or group
//	    roles: [admin]
//	  - group: os-group:ops
//	    roles: [operator]
//	    hosts: customer=acme     # narrows all that this line gives, as runbooks does
//	  - principal: user:ci
//	    grants: [{verbs: [run], runbooks: [firewall], hosts: customer=acme}]
//
// A file with a mistake is refused whole. The error is of type fleet.Mistakes and has all of them.
func Parse(src fleet.Source) (*Policy, error) {
	p := &Policy{file: src.Name}
	r := &reader{in: strictyaml.New(src.Name), policy: p, rules: &p.rules, roles: map[string]*role{}}
	root := r.in.Document(src.Data, "a mapping with who, and perhaps roles")
	if root != nil {
		r.read(root)
	}
	if err := r.in.Err(); err != nil {
		return nil, err
	}
	p.doubts.Sort([]string{src.Name})
	return p, nil
}

// reader collects grants.
type reader struct {
	in     *strictyaml.Reader
	policy *Policy // nil for a scope
	rules  *rules
	roles  map[string]*role
}

// role is a role of the file.
type role struct {
	line   int
	grants []draft
	used   bool
}

// draft is a grant as it stands in the file, with its own limits only.
type draft struct {
	limit
	verbs verbSet
	role  string
	line  int
}

// limit narrows a grant or a line to some runbooks and hosts.
type limit struct {
	runbooks []glob         // none: all
	hosts    fleet.Selector // empty text: all
	line     int            // of hosts
}

func (r *reader) doubt(line int, format string, args ...any) {
	r.policy.doubts = append(r.policy.doubts, fleet.Mistake{File: r.in.File, Line: line,
		Text: fmt.Sprintf(format, args...)})
}

func (r *reader) read(root *yaml.Node) {
	known := []string{"roles", "who"}
	if fleet.Foreign(root, known) {
		r.in.Wrong(root.Line, "this is no file of access: it has no known key: want %s",
			strings.Join(known, " and "))
		return
	}
	fields := r.in.Fields(root, "the file", known)
	if fields == nil {
		return
	}
	r.readRoles(fields["roles"])
	if fields["who"] == nil {
		r.in.Wrong(root.Line, "who is missing: nobody could do anything; want a list of principals and "+
			"groups")
		return
	}
	for _, n := range r.in.List(fields["who"], "who") {
		r.readLine(n)
	}
	for _, name := range slices.Sorted(maps.Keys(r.roles)) {
		if one := r.roles[name]; !one.used {
			r.doubt(one.line, "nobody has the role %s", name)
		}
	}
	if len(r.policy.admins) == 0 {
		r.doubt(root.Line, "nobody has the verb admin for the whole house, so nobody can make tokens, "+
			"publish windows, and so on")
	}
}

func (r *reader) readRoles(n *yaml.Node) {
	if n == nil {
		return
	}
	for _, p := range r.in.Pairs(n, "roles") {
		name := p.Key.Value
		switch {
		case builtin[name] != 0:
			r.in.Wrong(p.Key.Line, "role %s is built in and stays as it is: choose another name", name)
		case fleet.CheckName(name) != nil:
			r.in.Wrong(p.Key.Line, "role %s: use letters, digits, '.', '-' and '_'", wording.Quote(name))
		}
		r.roles[name] = &role{line: p.Key.Line, grants: r.roleGrants(name, p.Value)}
	}
}

// roleGrants reads a role: a list of verbs, or a list of grants.
func (r *reader) roleGrants(name string, n *yaml.Node) []draft {
	items := r.in.Filled(n, "role "+wording.Clip(name), "grants or verbs")
	if len(items) > 0 && items[0].Kind == yaml.ScalarNode {
		return []draft{{verbs: r.verbs(n), role: name, line: n.Line}}
	}
	var list []draft
	for _, item := range items {
		list = append(list, r.grant(item, name))
	}
	return list
}

// grant reads a mapping with verbs, runbooks and hosts.
func (r *reader) grant(n *yaml.Node, role string) draft {
	d := draft{role: role, line: n.Line}
	fields := r.in.Fields(n, "a grant", []string{"verbs", "runbooks", "hosts"})
	if fields == nil {
		return d
	}
	if fields["verbs"] == nil {
		r.in.Wrong(n.Line, "a grant without verbs allows nothing: want verbs, such as [see, plan]")
	} else {
		d.verbs = r.verbs(fields["verbs"])
	}
	d.limit = r.limit(fields)
	return d
}

func (r *reader) verbs(n *yaml.Node) verbSet {
	var all verbSet
	for _, word := range r.in.Texts(n, "verbs", atLeastOne) {
		one := setOf(Verb(word.Value))
		switch {
		case one == 0:
			r.in.Wrong(word.Line, "unknown verb %s: %s", wording.Quote(word.Value),
				scripts.Instead(word.Value, texts(Verbs())))
		case all&one != 0:
			r.in.Wrong(word.Line, "verb %s is there twice", word.Value)
		}
		all |= one
	}
	return all
}

// limit reads the keys runbooks and hosts.
func (r *reader) limit(fields map[string]*yaml.Node) limit {
	var l limit
	if n := fields["runbooks"]; n != nil {
		for _, word := range r.in.Texts(n, "runbooks", atLeastOne) {
			one, err := parseGlob(word.Value)
			if err != nil {
				r.in.Wrong(word.Line, "%v", err)
			}
			l.runbooks = append(l.runbooks, one)
		}
		if runbooksUnlimited(l.runbooks) {
			l.runbooks = nil
		}
	}
	if n := fields["hosts"]; n != nil {
		l.line = n.Line
		text, ok := r.in.Long(n, "hosts")
		switch {
		case !ok:
		case strings.TrimSpace(text) == "":
			r.in.Wrong(n.Line, "hosts is empty: want a selector, or leave it out for all hosts")
		case !hostsUnlimited(strings.TrimSpace(text)):
			var err error
			if l.hosts, err = parseHosts(text); err != nil {
				r.in.Wrong(n.Line, "hosts: %v", err)
			}
		}
	}
	return l
}

var lineKeys = []string{"principal", "group", "roles", "grants", "hosts", "runbooks"}

// readLine reads one item of who.
func (r *reader) readLine(n *yaml.Node) {
	fields := r.in.Fields(n, "a line of who", lineKeys)
	if fields == nil {
		return
	}
	principal, group := r.named(n, fields)
	own := r.limit(fields)
	drafts := r.given(n, fields)
	if len(r.rules.grants)+len(drafts) > grantsMax {
		r.in.Wrong(n.Line, "more than %d grants: give fewer roles of many grants", grantsMax)
		return
	}
	for _, d := range drafts {
		r.give(recipient{principal, group, own, n.Line}, d)
	}
}

// given returns the grants of a line, from its roles and its own.
func (r *reader) given(n *yaml.Node, fields map[string]*yaml.Node) []draft {
	if fields["roles"] == nil && fields["grants"] == nil {
		r.in.Wrong(n.Line, "it gives nothing: want roles or grants")
		return nil
	}
	var drafts []draft
	if roles := fields["roles"]; roles != nil {
		for _, word := range r.in.Texts(roles, "roles", atLeastOne) {
			name := word.Value
			switch one := r.roles[name]; {
			case one != nil:
				one.used = true
				drafts = append(drafts, one.grants...)
			case builtin[name] != 0:
				drafts = append(drafts, draft{verbs: builtin[name], role: name, line: word.Line})
			default:
				known := slices.Concat(Roles(), slices.Sorted(maps.Keys(r.roles)))
				r.in.Wrong(word.Line, "unknown role %s: %s", wording.Quote(name),
					scripts.Instead(name, known))
			}
		}
	}
	if grants := fields["grants"]; grants != nil {
		for _, item := range r.in.Filled(grants, "grants", "grants") {
			drafts = append(drafts, r.grant(item, ""))
		}
	}
	return drafts
}

// named reads the principal or the group of a line.
func (r *reader) named(n *yaml.Node, fields map[string]*yaml.Node) (principal, group string) {
	of := func(key string, check func(string) error) string {
		if fields[key] == nil {
			return ""
		}
		text, ok := r.in.Text(fields[key], key)
		if ok {
			if err := check(text); err != nil {
				r.in.Wrong(fields[key].Line, "%v", err)
			}
		}
		return text
	}
	principal, group = of("principal", CheckPrincipal), of("group", CheckGroup)
	switch {
	case fields["principal"] != nil && fields["group"] != nil:
		r.in.Wrong(fields["group"].Line, "principal and group: give one a line")
	case fields["principal"] == nil && fields["group"] == nil:
		r.in.Wrong(n.Line, "it names nobody: want principal or group")
	}
	return principal, group
}

// recipient is a line of who: somebody, and the limits for all that the line gives.
type recipient struct {
	principal, group string
	limit            limit
	line             int
}

// give adds a grant of a line to the policy.
func (r *reader) give(to recipient, d draft) {
	g := r.joined(d, to.limit)
	if d.role != "" {
		g.line = to.line
	}
	switch idle := g.idle(); {
	case idle == 0:
	case idle == g.verbs:
		r.in.Wrong(g.line, "%s: it allows nothing, because %s", r.rules.words(&g), whole(idle))
		return
	default:
		r.doubt(g.line, "%s: without effect here: %s, because %s", r.rules.words(&g), idle, whole(idle))
	}
	r.policy.give(to.group, to.principal, g)
}

// whole says why some verbs allow no limit.
func whole(idle verbSet) string {
	if idle == setOf(Author) {
		return "a runbook can run on every host: author needs a grant without hosts"
	}
	return "they concern the whole house: admin and audit need a grant without hosts and runbooks, " +
		"author one without hosts"
}

// joined returns a grant with its own limits and those of a line.
func (r *reader) joined(d draft, line limit) grant {
	g := grant{verbs: d.verbs, role: d.role, line: d.line}
	for _, l := range []limit{d.limit, line} {
		if len(l.runbooks) > 0 {
			g.runbooks = append(g.runbooks, l.runbooks)
		}
		if l.hosts.String() != "" {
			if i := r.rules.add(l.hosts, l.line); !slices.Contains(g.hosts, i) {
				g.hosts = append(g.hosts, i)
			}
		}
	}
	return g
}

// plain reads a grant that stands in no file.
func (r *reader) plain(from Grant) (grant, bool) {
	before := r.in.Count()
	d := draft{}
	for _, v := range from.Verbs {
		if setOf(v) == 0 {
			r.in.Wrong(0, "unknown verb %s: %s", wording.Quote(string(v)),
				scripts.Instead(string(v), texts(Verbs())))
		}
		d.verbs |= setOf(v)
	}
	if len(from.Verbs) == 0 {
		r.in.Wrong(0, "a grant without verbs allows nothing: want verbs, such as see")
	}
	for _, text := range from.Runbooks {
		one, err := parseGlob(text)
		if err != nil {
			r.in.Wrong(0, "%v", err)
		}
		d.runbooks = append(d.runbooks, one)
	}
	if runbooksUnlimited(d.runbooks) {
		d.runbooks = nil
	}
	if !hostsUnlimited(from.Hosts) {
		var err error
		if d.hosts, err = parseHosts(from.Hosts); err != nil {
			r.in.Wrong(0, "hosts: %v", err)
		}
	}
	if r.in.Count() > before {
		return grant{}, false
	}
	g := r.joined(d, limit{})
	if idle := g.idle(); idle != 0 && idle == g.verbs {
		r.in.Wrong(0, "%s: it allows nothing, because %s", r.rules.words(&g), whole(idle))
	}
	return g, r.in.Count() == before
}

func texts(verbs []Verb) []string {
	list := make([]string, len(verbs))
	for i, v := range verbs {
		list[i] = string(v)
	}
	return list
}

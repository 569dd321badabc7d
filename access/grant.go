package access

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"muster/fleet"
	"muster/internal/wording"
)

// Grant allows some verbs, for some runbooks, on some hosts.
type Grant struct {
	Verbs    []Verb   `json:"verbs"`
	Runbooks []string `json:"runbooks,omitempty"` // names, or globs as dns*; none: all
	Hosts    string   `json:"hosts,omitempty"`    // a selector; empty: all
}

// grant is a Grant that was read. Several limits of one kind all hold: those of a role, and
// those of the line that gives the role.
type grant struct {
	verbs    verbSet
	runbooks [][]glob // of each list one matches
	hosts    []int    // indexes of selectors, each of which picks the host
	role     string   // empty: none
	line     int      // that gives it; 0: no file
}

// rules are grants and the selectors that they name, each selector once.
type rules struct {
	grants    []grant
	selectors []selector
	index     map[string]int // text of a selector → its index
}

// selector is a selector and the first line that has it.
type selector struct {
	fleet.Selector
	line int
}

// add returns the index of a selector.
func (r *rules) add(sel fleet.Selector, line int) int {
	i, known := r.index[sel.String()]
	if !known {
		if r.index == nil {
			r.index = map[string]int{}
		}
		i = len(r.selectors)
		r.index[sel.String()] = i
		r.selectors = append(r.selectors, selector{sel, line})
	}
	return i
}

// Act is something that somebody wants to do to hosts.
type Act struct {
	Verb    Verb
	Runbook string // empty: it concerns no runbook
}

// covers reports whether a grant counts for an act, apart from its limit of hosts.
func (g *grant) covers(act Act, verb verbSet) bool {
	if g.verbs&verb == 0 {
		return false
	}
	switch {
	case act.Verb == Admin || act.Verb == Audit:
		return len(g.runbooks)+len(g.hosts) == 0
	case act.Verb == Author && len(g.hosts) > 0:
		return false
	case act.Runbook == "":
		return len(g.runbooks) == 0 || act.Verb == See
	}
	for _, list := range g.runbooks {
		if !slices.ContainsFunc(list, func(one glob) bool { return one.matches(act.Runbook) }) {
			return false
		}
	}
	return true
}

// idle returns the verbs of a grant that count for nothing because of its limits.
func (g *grant) idle() verbSet {
	var idle verbSet
	if len(g.hosts) > 0 {
		idle = setOf(Author, Admin, Audit)
	}
	if len(g.runbooks) > 0 {
		idle |= setOf(Admin, Audit)
	}
	return g.verbs & idle
}

// glob is the name of a runbook, or a pattern for such names: '*' stands for any characters and
// '?' for one.
type glob struct {
	text           string
	prefix, suffix string // before the first wildcard, behind the last one
}

// globMax bounds globs.
const globMax = 63 // bytes, as names of runbooks

func parseGlob(text string) (glob, error) {
	ok := func(r rune) bool {
		return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("-_*?", r)
	}
	switch {
	case text == "":
		return glob{}, errors.New("a runbook is empty: want a name, or a glob as dns*")
	case len(text) > globMax:
		return glob{}, fmt.Errorf("runbook %s has %d bytes: at most %d", wording.Quote(text), len(text),
			globMax)
	case strings.ContainsFunc(text, func(r rune) bool { return !ok(r) }):
		return glob{}, fmt.Errorf("runbook %s: use lower-case letters, digits, '-' and '_', '*' for any "+
			"characters and '?' for one", wording.Quote(text))
	}
	g := glob{text: text, prefix: text}
	if i := strings.IndexAny(text, "*?"); i >= 0 {
		g.prefix, g.suffix = text[:i], text[strings.LastIndexAny(text, "*?")+1:]
	}
	return g, nil
}

func (g glob) matches(name string) bool {
	wild := len(g.text) - len(g.prefix) - len(g.suffix) // bytes from the first to the last wildcard
	switch {
	case wild == 0:
		return g.text == name
	case !strings.HasPrefix(name, g.prefix) || !strings.HasSuffix(name, g.suffix):
		return false
	case wild == 1 && g.text[len(g.prefix)] == '*':
		return len(name) >= len(g.prefix)+len(g.suffix)
	}
	ok, _ := path.Match(g.text, name) // the only error is a bad pattern, which parseGlob refuses
	return ok
}

// hostsUnlimited and runbooksUnlimited report whether a limit of a file limits nothing.
func hostsUnlimited(text string) bool { return text == "" || text == "all" || text == "*" }

func runbooksUnlimited(list []glob) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(g glob) bool {
		return strings.Trim(g.text, "*") == ""
	})
}

// parseHosts reads the selector of a grant. It refuses selectors whose hosts depend on others
// than the authors of the inventory, because those could widen a grant.
func parseHosts(text string) (fleet.Selector, error) {
	sel, err := fleet.ParseSelector(text)
	if err != nil {
		return sel, err
	}
	if len(sel.Earlier()) > 0 {
		return sel, fmt.Errorf("selector %s names a task: want hosts or labels of the inventory",
			wording.Quote(text))
	}
	if sel.Mentions(fleet.Drained) {
		return sel, fmt.Errorf("selector %s has the label %s, which orders change: want hosts or labels "+
			"of the inventory", wording.Quote(text), fleet.Drained)
	}
	for _, name := range fleet.FactNames() {
		if sel.Mentions(fleet.FactPrefix + name) {
			return sel, fmt.Errorf("selector %s has a fact, which the host itself reports: want hosts or "+
				"labels of the inventory", wording.Quote(text))
		}
	}
	return sel, nil
}

// words describes a grant, as in: role operator (see, plan, run, order), runbooks dns*, hosts
// customer=acme.
func (r *rules) words(g *grant) string {
	text := "verbs " + g.verbs.String()
	if g.role != "" {
		text = fmt.Sprintf("role %s (%s)", g.role, g.verbs)
	}
	for _, list := range g.runbooks {
		names := make([]string, len(list))
		for i, one := range list {
			names[i] = one.text
		}
		text += ", runbooks " + wording.ClipList(strings.Join(names, ","))
	}
	for _, i := range g.hosts {
		text += ", hosts " + wording.Clip(r.selectors[i].String())
	}
	return text
}

// placeOf returns the file and line of a grant; empty if it has none.
func placeOf(file string, g *grant) string {
	if g.line == 0 {
		return cmp.Or(file, "the default")
	}
	return fmt.Sprintf("%s:%d", file, g.line)
}

package machine

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// filter is the packet filter of a machine: it has rules, and they filter nothing.
type filter struct {
	mu     sync.Mutex
	tables []ruleTable
}

// ruleTable is one of the tables of a filter.
type ruleTable struct {
	name string   // family and name
	body []string // its chains and other parts, as they were given, a line each
}

// Rules returns the rules in force as nft lists them; empty: there are none.
func (m *Machine) Rules() string { return listed(m.filter.now()) }

func (f *filter) now() []ruleTable {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.tables)
}

func (f *filter) set(tables []ruleTable) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tables = tables
}

func listed(tables []ruleTable) string {
	var b strings.Builder
	for _, t := range tables {
		fmt.Fprintf(&b, "table %s {\n%s\n}\n", t.name, strings.Join(t.body, "\n"))
	}
	return b.String()
}

// runNft supports nft [-c] -f FILE, nft list ruleset and nft flush ruleset.
func runNft(c *call) Status {
	given, words, err := c.options("csf")
	if err != nil {
		return c.fail(1, "%s", err)
	}
	f := &c.machine.filter
	asked := strings.Join(words, " ")
	switch {
	case strings.Contains(given, "f") && len(words) == 1:
		return c.loadRules(words[0], strings.Contains(given, "c"))
	case asked == "list ruleset":
		return c.say("%s", listed(f.now()))
	case asked == "flush ruleset":
		f.set(nil)
		return Status{}
	}
	return c.fail(1, "syntax error: %s is more than this nft knows", asked)
}

// loadRules puts a whole file in force, or nothing.
func (c *call) loadRules(name string, checkOnly bool) Status {
	data, err := c.machine.disk().read(c.path(name))
	if err != nil {
		return c.fail(1, "could not open %s: %s", name, err)
	}
	f := &c.machine.filter
	r := ruleReader{tables: f.now()}
	if err := r.read(string(data)); err != nil {
		return c.fail(1, "%s:%d: Error: %s", name, r.line, err)
	}
	if !checkOnly {
		f.set(r.tables)
	}
	return Status{}
}

// ruleReader reads a file of rules, line by line.
type ruleReader struct {
	tables []ruleTable
	line   int
}

func (r *ruleReader) read(text string) error {
	depth := 0
	var open ruleTable
	for line := range strings.Lines(text) {
		r.line++
		line = strings.TrimRight(line, " \t\n")
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		before := depth
		depth += strings.Count(line, "{") - strings.Count(line, "}")
		switch {
		case depth < 0:
			return trouble("syntax error, unexpected '}'")
		case before > 0 && depth > 0:
			open.body = append(open.body, line)
		case before > 0:
			if err := open.check(); err != nil {
				return err
			}
			r.put(open)
		case strings.Join(words, " ") == "flush ruleset":
			r.tables = nil
		case depth == 1 && len(words) == 4 && words[0] == "table":
			open = ruleTable{name: words[1] + " " + words[2]}
		default:
			return trouble("syntax error, unexpected " + words[0])
		}
	}
	if depth > 0 {
		return trouble("syntax error, unexpected end of file")
	}
	return nil
}

// put adds to an existing table, as nft does.
func (r *ruleReader) put(t ruleTable) {
	i := slices.IndexFunc(r.tables, func(old ruleTable) bool { return old.name == t.name })
	if i < 0 {
		r.tables = append(r.tables, t)
		return
	}
	t.body = append(slices.Clone(r.tables[i].body), t.body...)
	r.tables = slices.Clone(r.tables)
	r.tables[i] = t
}

// check checks that every chain that is jumped to exists.
func (t ruleTable) check() error {
	chains := map[string]bool{}
	for _, line := range t.body {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "chain" {
			chains[words[1]] = true
		}
	}
	for _, line := range t.body {
		words := strings.Fields(line)
		for i, w := range words[:len(words)-1] {
			if (w == "jump" || w == "goto") && !chains[words[i+1]] {
				return fmt.Errorf("could not process rule: %w: %s", noEntry, words[i+1])
			}
		}
	}
	return nil
}

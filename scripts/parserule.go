package scripts

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster/internal/jsonpath"
)

// savedPrefix starts the placeholders of saved values; the value's name follows.
const savedPrefix = "saved."

// savedNames records which saved values exist at each step.
type savedNames struct {
	rescuing bool            // the current steps belong to an on_fail
	now      map[string]bool // saved by earlier steps
	ever     map[string]bool // saved by any step
	missing  []savedUse
}

// savedUse is a placeholder for a value that no earlier step saves.
type savedUse struct {
	place
	name string
}

func (s *savedNames) set(list []Save) {
	if s.now == nil {
		s.now = map[string]bool{}
	}
	if s.ever == nil {
		s.ever = map[string]bool{}
	}
	for _, one := range list {
		s.now[one.Name], s.ever[one.Name] = true, true
	}
}

func (p *parser) uses(where place, name string) {
	if !p.saved.now[name] {
		p.saved.missing = append(p.saved.missing, savedUse{where, name})
	}
}

// checkSaved reports saved values that are used but not available.
func (p *parser) checkSaved() {
	for _, use := range p.saved.missing {
		if p.saved.ever[use.name] {
			p.add(use.place, "{{saved.%s}} is used before a step has saved it, or outside of the "+
				"on_fail that saves it", use.name)
			continue
		}
		p.add(use.place, "{{saved.%s}}: no step saves a value %s: %s", use.name, brief(use.name),
			Instead(use.name, slices.Sorted(maps.Keys(p.saved.ever))))
	}
}

// rules reads a list of at most rulesMax items.
func (p *parser) rules(v value) []value {
	items := p.items(v)
	if v.isList() && len(items) == 0 {
		p.add(at(v.Node), "%s is empty: give it an item, or leave it out", v.key)
	}
	if len(items) > rulesMax {
		p.add(at(v.Node), "%s has %d items: at most %d", v.key, len(items), rulesMax)
		return nil
	}
	return items
}

func (p *parser) conditions(v value) []Condition {
	var list []Condition
	for _, item := range p.rules(v) {
		text, ok := p.text(item, wordMax)
		if !ok {
			continue
		}
		c, err := readCondition(text)
		if err != nil {
			p.add(at(item.Node), "%s: %s", v.key, err)
			continue
		}
		for _, ref := range c.refs() {
			if why := p.unfit(at(item.Node), ref); why != "" {
				p.add(at(item.Node), "%s", why)
			}
		}
		if len(c.refs()) == 0 {
			p.add(at(item.Node), "%s: %s compares two texts, which is the same always", v.key, c)
		}
		list = append(list, c)
	}
	return list
}

func (p *parser) expect(v value) *Expect {
	x := &Expect{}
	seen := readMapping(p, v, expectKeys(), x)
	if v.isMapping() && len(seen) == 0 {
		p.add(at(v.Node), "expect is empty: give it one of %s",
			strings.Join(keyNames(expectKeys()), ", "))
	}
	return x
}

func expectKeys() []key[Expect] {
	return []key[Expect]{
		{"exit", func(p *parser, v value, x *Expect) {
			for _, item := range p.rules(v) {
				if n, ok := p.number(item, 0, 255); ok {
					x.Exit = append(x.Exit, int(n))
				}
			}
		}},
		{"match", func(p *parser, v value, x *Expect) { x.Match = p.outputPattern(v) }},
		{"no_match", func(p *parser, v value, x *Expect) { x.NoMatch = p.outputPattern(v) }},
		{"json", func(p *parser, v value, x *Expect) { x.JSON = p.jsonTests(v) }},
	}
}

// outputPattern reads a pattern that is searched in an output.
func (p *parser) outputPattern(v value) string {
	text, ok := p.text(v, wordMax)
	if !ok {
		return ""
	}
	if text == "" {
		p.add(at(v.Node), "%s is empty: it would match all", v.key)
	}
	if _, err := regexp.Compile(multiline(text)); err != nil {
		p.add(at(v.Node), "%s %s: %s", v.key, brief(text), err)
	}
	return text
}

func (p *parser) jsonTests(v value) []JSONTest {
	var list []JSONTest
	for _, item := range p.rules(v) {
		text, ok := p.text(item, wordMax)
		if !ok {
			continue
		}
		c, err := readCondition(text)
		if err == nil {
			_, err = jsonpath.Split(c.Left.Text)
		}
		switch {
		case err != nil:
			p.add(at(item.Node), "json: %s", err)
			continue
		case c.Left.Ref != "":
			p.add(at(item.Node), "json: want a path on the left side, not {{%s}}", c.Left.Ref)
		}
		if c.Right.Ref != "" {
			if why := p.unfit(at(item.Node), c.Right.Ref); why != "" {
				p.add(at(item.Node), "%s", why)
			}
		}
		list = append(list, JSONTest{Path: c.Left.Text, Op: c.Op, Right: c.Right})
	}
	return list
}

func (p *parser) classes(v value) []ClassRule {
	var list []ClassRule
	for _, item := range p.rules(v) {
		var c ClassRule
		seen := readMapping(p, item, classKeys(), &c)
		if _, ok := seen["class"]; !ok && item.isMapping() {
			p.add(at(item.Node), "the rule has no class: give it one of %s",
				strings.Join(classNames(), ", "))
		}
		if c.Exit == nil && c.Match == "" && item.isMapping() && len(seen) <= 2 {
			p.add(at(item.Node), "the rule fits every failure: give it exit or match")
		}
		list = append(list, c)
	}
	return list
}

func classKeys() []key[ClassRule] {
	return []key[ClassRule]{
		{"exit", func(p *parser, v value, c *ClassRule) {
			if n, ok := p.number(v, 0, 255); ok {
				code := int(n)
				c.Exit = &code
			}
		}},
		{"match", func(p *parser, v value, c *ClassRule) { c.Match = p.outputPattern(v) }},
		{"class", func(p *parser, v value, c *ClassRule) {
			text, ok := p.text(v, nameMax)
			if ok && !slices.Contains(classNames(), text) {
				p.add(at(v.Node), "class %s: %s", brief(text), Instead(text, classNames()))
			}
			c.Class = text
		}},
		{"say", func(p *parser, v value, c *ClassRule) { c.Say, _ = p.text(v, wordMax) }},
	}
}

func (p *parser) again(v value) *Again {
	a := &Again{Delay: defaultAgain}
	seen := readMapping(p, v, againKeys(), a)
	if _, ok := seen["tries"]; !ok && v.isMapping() {
		p.add(at(v.Node), "retry has no tries: say how often the step is tried")
	}
	return a
}

func againKeys() []key[Again] {
	return []key[Again]{
		{"tries", func(p *parser, v value, a *Again) {
			n, _ := p.number(v, 2, againMax)
			a.Tries = int(n)
		}},
		{"delay", func(p *parser, v value, a *Again) { a.Delay, _ = p.duration(v, 0, delayMax) }},
	}
}

// save reads the values to keep: a mapping by name.
func (p *parser) save(v value) []Save {
	pairs := p.pairs(v)
	if v.isMapping() && len(pairs) == 0 {
		p.add(at(v.Node), "save is empty: give it a name, or leave it out")
	}
	if len(pairs) > rulesMax {
		p.add(at(v.Node), "save has %d values: at most %d", len(pairs), rulesMax)
		return nil
	}
	var list []Save
	for _, pair := range pairs {
		s := Save{Name: p.word(value{Node: pair.keyNode, key: "save"})}
		seen := readMapping(p, pair, saveKeys(), &s)
		sources := 0
		for _, name := range []string{"match", "json", "lines"} {
			if _, ok := seen[name]; ok {
				sources++
			}
		}
		if sources != 1 && pair.isMapping() {
			p.add(at(pair.Node), "save %s: want one of match, json and lines, got %s", brief(s.Name),
				strconv.Itoa(sources))
		}
		same := func(other Save) bool { return other.Name == s.Name && s.Name != "" }
		if slices.ContainsFunc(list, same) {
			p.add(at(pair.keyNode), "save %s is there twice", brief(s.Name))
		}
		list = append(list, s)
	}
	return list
}

func saveKeys() []key[Save] {
	return []key[Save]{
		{"match", func(p *parser, v value, s *Save) { s.Match = p.outputPattern(v) }},
		{"json", func(p *parser, v value, s *Save) {
			text, ok := p.text(v, wordMax)
			if !ok {
				return
			}
			if _, err := jsonpath.Split(text); err != nil {
				p.add(at(v.Node), "json: %s", err)
			}
			s.JSON = text
		}},
		{"lines", func(p *parser, v value, s *Save) {
			if s.Lines = p.flag(v); !s.Lines {
				p.add(at(v.Node), "lines: want true, or another key")
			}
		}},
		{"default", func(p *parser, v value, s *Save) {
			if text, ok := p.text(v, wordMax); ok {
				s.Default = &text
			}
		}},
	}
}

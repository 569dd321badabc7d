package scripts

import (
	"maps"
	"slices"
	"strings"
)

// readSteps reads the steps. It already knows arguments, timeout, repeatable and disruptive,
// because their keys are read before this one.
func readSteps(p *parser, v value, r *Runbook) {
	items := p.items(v)
	if len(items) == 0 && v.isList() {
		p.add(at(v.Node), "steps is empty: a runbook has at least one step")
	}
	first := map[string]int{} // line of the first step with each name
	r.Steps = p.steps(v, items, r, first)
	r.Main = len(r.Steps)
	for i := range r.Steps {
		if b := r.Steps[i].OnFail; b != nil {
			b.First += r.Main
		}
	}
	r.Steps = append(r.Steps, p.rescues...)
	if len(r.Steps) > stepsMax && len(items) <= stepsMax {
		p.add(at(v.Node), "%d steps, those of on_fail included: a runbook has at most %d",
			len(r.Steps), stepsMax)
	}
	p.checkSaved()
	r.Repeatable = !slices.ContainsFunc(r.Steps, func(s Step) bool { return !s.Repeatable })
}

// steps reads a list of steps; first has the line of each name seen so far.
func (p *parser) steps(v value, items []value, r *Runbook, first map[string]int) []Step {
	if len(items) > stepsMax {
		p.add(at(v.Node), "%d steps: a runbook has at most %d", len(items), stepsMax)
		return nil
	}
	var list []Step
	for _, item := range items {
		s := Step{Timeout: r.Timeout, Repeatable: r.Repeatable, Disruptive: r.Disruptive}
		seen := readMapping(p, item, stepKeys(), &s)
		if !item.isMapping() {
			continue
		}
		if _, ok := seen["name"]; !ok {
			p.add(at(item.Node), "the step has no name")
		}
		if line, twice := first[s.Name]; twice && s.Name != "" {
			p.add(at(seen["name"].Node), "a second step %q, first on line %d", s.Name, line)
		} else {
			first[s.Name] = item.Line
		}
		p.checkStep(&s, r, item, seen)
		p.readOnFail(&s, r, seen, first)
		p.saved.set(s.Save)
		list = append(list, s)
	}
	return list
}

// checkStep checks the keys of a step against its kind and its runbook.
func (p *parser) checkStep(s *Step, r *Runbook, item value, seen map[string]value) {
	rule, ok := kindTable[s.Kind]
	if !ok {
		p.add(at(item.Node), "the step does nothing: give it one of %s", strings.Join(kindNames(), ", "))
		return
	}
	always := []string{"name", string(s.Kind), "when", "on_fail", "outcome"}
	if !rule.asks { // a gate runs nothing on the host, and has a timeout of its own
		always = append(always, "timeout")
	}
	for _, name := range slices.Sorted(maps.Keys(seen)) {
		known := slices.Contains(keyNames(stepKeys()), name) && !slices.Contains(kindNames(), name)
		if known && !slices.Contains(always, name) && !slices.Contains(rule.keys, name) {
			p.add(at(seen[name].keyNode), "%s means nothing for a step of kind %s", name, s.Kind)
		}
	}
	if over, ok := seen["timeout"]; ok && s.Timeout > r.Timeout {
		p.add(at(over.Node), "timeout is %s, but the runbook ends after %s: "+
			"raise the runbook's timeout", s.Timeout, r.Timeout)
	}
	if !slices.Contains(rule.keys, "repeatable") {
		s.Repeatable = true // by its nature
	}
	if !slices.Contains(rule.keys, "disruptive") {
		s.Disruptive = false
	}
	if one, ok := seen["disruptive"]; ok && s.Disruptive && !r.Disruptive {
		p.add(at(one.keyNode), "a disruptive step in a runbook that is not: "+
			"say disruptive: true for the runbook, else its group is not kept free")
	}
	if rule.breaks && !r.Disruptive {
		p.add(at(seen[string(s.Kind)].keyNode), "a %s disturbs its host: "+
			"say disruptive: true for the runbook", s.Kind)
	}
	if s.Dry == DryDiff { // it changes nothing, whatever its kind is
		s.Kind, s.Repeatable, s.Disruptive = KindCheck, true, false
	}
	p.checkRetry(s, seen)
}

// checkRetry reports a retry that could never happen.
func (p *parser) checkRetry(s *Step, seen map[string]value) {
	transient := func(c ClassRule) bool { return c.Class == ClassTransient }
	if one, ok := seen["retry"]; ok && one.isMapping() && !slices.ContainsFunc(s.Classes, transient) {
		p.add(at(one.keyNode), "retry is for failures of class transient, and no rule of classes "+
			"says which those are")
	}
}

// readOnFail reads the steps that run after a failure. They follow all other steps.
func (p *parser) readOnFail(s *Step, r *Runbook, seen map[string]value, first map[string]int) {
	v, ok := seen["on_fail"]
	if one, has := seen["outcome"]; has && !p.saved.rescuing {
		p.add(at(one.keyNode), "outcome is for the last step of on_fail")
	}
	if !ok {
		return
	}
	if p.saved.rescuing {
		p.add(at(v.keyNode), "on_fail within on_fail: what helps there must be one step")
		return
	}
	items := p.items(v)
	if len(items) == 0 && v.isList() {
		p.add(at(v.Node), "on_fail is empty: give it a step, or leave it out")
	}
	// Values of the failed step do not exist, and values of these steps are visible only here.
	before := maps.Clone(p.saved.now)
	p.saved.rescuing = true
	block := p.steps(v, items, r, first)
	p.saved.rescuing, p.saved.now = false, before

	for i, one := range block {
		rule, known := kindTable[one.Kind]
		if known && !rule.rescues {
			p.add(at(items[min(i, len(items)-1)].Node), "a step of kind %s cannot stand in on_fail",
				one.Kind)
		}
		if one.Outcome != "" && i+1 < len(block) {
			p.add(at(items[min(i, len(items)-1)].Node), "outcome is for the last step of on_fail")
		}
	}
	s.OnFail = &Block{First: len(p.rescues), Count: len(block)}
	p.rescues = append(p.rescues, block...)
}

func stepKeys() []key[Step] {
	name := key[Step]{"name", func(p *parser, v value, s *Step) { s.Name = p.word(v) }}
	return slices.Concat([]key[Step]{name}, kindKeys(), otherKeys())
}

// otherKeys are the keys for conditions, success and reactions of a step.
func otherKeys() []key[Step] {
	return []key[Step]{
		{"timeout", func(p *parser, v value, s *Step) {
			if d, ok := p.duration(v, timeoutMin, timeoutMax); ok {
				s.Timeout = d
			}
		}},
		{"repeatable", func(p *parser, v value, s *Step) { s.Repeatable = p.flag(v) }},
		{"disruptive", func(p *parser, v value, s *Step) { s.Disruptive = p.flag(v) }},
		{"preflight", func(p *parser, v value, s *Step) {
			if p.flag(v) {
				s.Dry = DryToo
			}
		}},
		{"diff", func(p *parser, v value, s *Step) {
			if s.Dry == DryToo {
				p.add(at(v.keyNode), "diff and preflight exclude each other: keep one")
			}
			if p.flag(v) {
				s.Dry = DryDiff
			}
		}},
		{"when", func(p *parser, v value, s *Step) { s.When = p.conditions(v) }},
		{"expect", func(p *parser, v value, s *Step) { s.Expect = p.expect(v) }},
		{"classes", func(p *parser, v value, s *Step) { s.Classes = p.classes(v) }},
		{"retry", func(p *parser, v value, s *Step) { s.Retry = p.again(v) }},
		{"save", func(p *parser, v value, s *Step) { s.Save = p.save(v) }},
		{"on_fail", func(*parser, value, *Step) {}}, // see readOnFail
		{"outcome", func(p *parser, v value, s *Step) { s.Outcome = p.outcome(v) }},
	}
}

// kind sets the kind of a step; a step has exactly one.
func (p *parser) kind(v value, k Kind, s *Step) bool {
	if s.Kind != "" {
		p.add(at(v.keyNode), "the step is %q already: make %q a step of its own", s.Kind, k)
		return false
	}
	s.Kind = k
	return true
}

func (p *parser) outcome(v value) string {
	text, ok := p.text(v, nameMax)
	if ok && text != RolledBack {
		p.add(at(v.Node), "outcome %s: the only one that a step can give is %s", brief(text), RolledBack)
	}
	return text
}

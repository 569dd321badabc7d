package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"muster/fleet"
)

// Parse reads a runbook. The name is that of its file, for messages. It reports
// all mistakes at once, as Mistakes.
func Parse(name string, data []byte) (*Runbook, error) {
	r, p := parse(name, data)
	if len(p.mistakes) > 0 {
		return nil, p.mistakes.sorted()
	}
	return r, nil
}

func parse(file string, data []byte) (*Runbook, *parser) {
	p := &parser{file: file, name: place{1, 1}}
	root := p.load(data)
	if root == nil {
		return nil, p
	}
	r := &Runbook{
		Timeout: defaultTimeout,
		Retry:   Retry{Submit: defaultSubmit, Delay: defaultDelay},
		Hash:    hash(data),
	}
	v := value{Node: root, key: "a runbook", keyNode: root}
	seen := readMapping(p, v, runbookKeys(), r)
	for _, must := range []string{"name", "steps"} {
		if _, ok := seen[must]; !ok && v.isMapping() {
			p.add(at(root), "%s is missing", must)
		}
	}
	return r, p
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func runbookKeys() []key[Runbook] {
	return []key[Runbook]{
		{"name", func(p *parser, v value, r *Runbook) {
			p.name, r.Name = at(v.Node), p.word(v)
		}},
		{"version", func(p *parser, v value, r *Runbook) { r.Version, _ = p.text(v, wordMax) }},
		{"description", func(p *parser, v value, r *Runbook) {
			r.Description, _ = p.text(v, proseMax)
		}},
		{"arguments", readArguments},
		{"disruptive", func(p *parser, v value, r *Runbook) { r.Disruptive = p.flag(v) }},
		{"needs", func(p *parser, v value, r *Runbook) { r.Needs = p.needs(v) }},
		{"repeatable", func(p *parser, v value, r *Runbook) { r.Repeatable = p.flag(v) }},
		{"timeout", func(p *parser, v value, r *Runbook) {
			if d, ok := p.duration(v, timeoutMin, timeoutMax); ok {
				r.Timeout = d
			}
		}},
		{"expect", func(p *parser, v value, r *Runbook) {
			r.Expect, _ = p.duration(v, timeoutMin, expectMax)
		}},
		{"window", func(p *parser, v value, r *Runbook) { r.Window = p.window(v) }},
		{"reserve", func(p *parser, v value, r *Runbook) {
			r.Reserve, _ = p.duration(v, 0, reserveMax)
		}},
		{"retry", func(p *parser, v value, r *Runbook) {
			readMapping(p, v, retryKeys(), &r.Retry)
		}},
		{"steps", readSteps},
	}
}

func retryKeys() []key[Retry] {
	return []key[Retry]{
		{"submit", func(p *parser, v value, r *Retry) {
			n, _ := p.number(v, 1, submitMax)
			r.Submit = int(n)
		}},
		{"delay", func(p *parser, v value, r *Retry) { r.Delay, _ = p.duration(v, 0, delayMax) }},
	}
}

// window reads whether a runbook needs one.
func (p *parser) window(v value) bool {
	const required, none = "required", "none"
	text, ok := p.text(v, wordMax)
	if ok && text != required && text != none {
		p.add(at(v.Node), "window is %s: want %s or %s", brief(text), required, none)
	}
	return text == required
}

// needs reads names of limits. Whether they are defined is known at submit.
func (p *parser) needs(v value) []string {
	items := p.items(v)
	if len(items) > needsMax {
		p.add(at(v.Node), "%d limits: a runbook needs at most %d", len(items), needsMax)
		return nil
	}
	var names []string
	for _, item := range items {
		name, ok := p.text(item, wordMax)
		if !ok {
			continue
		}
		err := fleet.CheckLimitName(name)
		switch {
		case err != nil:
			p.add(at(item.Node), "needs: %s", err)
		case slices.Contains(names, name):
			p.add(at(item.Node), "limit %s is there twice", brief(name))
		}
		names = append(names, name)
	}
	return names
}

// readSteps reads the steps. Arguments, timeout and repeatable are known by
// then: their keys stand before this one.
func readSteps(p *parser, v value, r *Runbook) {
	items := p.items(v)
	switch {
	case len(items) == 0 && v.isList():
		p.add(at(v.Node), "steps is empty: a runbook has at least one step")
	case len(items) > stepsMax:
		p.add(at(v.Node), "%d steps: a runbook has at most %d", len(items), stepsMax)
		return
	}

	first := map[string]int{} // line of the step of that name
	for _, item := range items {
		s := Step{Timeout: r.Timeout, Repeatable: r.Repeatable}
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
		if s.Kind == "" {
			p.add(at(item.Node), "the step does nothing: give it one of %s",
				strings.Join(kindNames(), ", "))
		}
		if over, ok := seen["timeout"]; ok && s.Timeout > r.Timeout {
			p.add(at(over.Node), "timeout is %s, but the runbook ends after %s: "+
				"raise the runbook's timeout", s.Timeout, r.Timeout)
		}
		r.Steps = append(r.Steps, s)
	}
	r.Repeatable = !slices.ContainsFunc(r.Steps, func(s Step) bool { return !s.Repeatable })
}

func kindNames() []string { return []string{string(KindRun), string(KindUpload)} }

func stepKeys() []key[Step] {
	return []key[Step]{
		{"name", func(p *parser, v value, s *Step) { s.Name = p.word(v) }},
		{string(KindRun), func(p *parser, v value, s *Step) {
			if p.kind(v, KindRun, s) {
				s.Run = p.shell(v)
			}
		}},
		{string(KindUpload), func(p *parser, v value, s *Step) {
			if p.kind(v, KindUpload, s) {
				s.Upload = readUpload(p, v)
			}
		}},
		{"timeout", func(p *parser, v value, s *Step) {
			if d, ok := p.duration(v, timeoutMin, timeoutMax); ok {
				s.Timeout = d
			}
		}},
		{"repeatable", func(p *parser, v value, s *Step) { s.Repeatable = p.flag(v) }},
	}
}

// kind says what a step is; it can be only one thing.
func (p *parser) kind(v value, k Kind, s *Step) bool {
	if s.Kind != "" {
		p.add(at(v.keyNode), "the step is %q already: make %q a step of its own", s.Kind, k)
		return false
	}
	s.Kind = k
	return true
}

// shell reads a shell text and checks its placeholders and its syntax.
func (p *parser) shell(v value) string {
	text, ok := p.text(v, textMax)
	if !ok {
		return ""
	}
	if strings.TrimSpace(text) == "" {
		p.add(at(v.Node), "run is empty: write a shell text")
	}
	t, _ := p.template(v, text)
	p.faults(v, checkShell(text, t))
	return text
}

// template cuts a text and reports placeholders that stand for no text.
func (p *parser) template(v value, text string) (t template, good bool) {
	t, faults := cut(text)
	for _, hole := range t.placeholders() {
		a := p.argument(hole.ref)
		switch {
		case isGiven(hole.ref):
		case a == nil:
			faults = append(faults, fault{hole.start, fmt.Sprintf("unknown placeholder {{%s}}: %s",
				hole.ref, instead(hole.ref, p.placeholders()))})
		case a.Type == TypeFile:
			faults = append(faults, fault{hole.start, fmt.Sprintf(
				"{{%s}} is a file: bring it to the host with a step of kind upload", hole.ref)})
		}
	}
	p.faults(v, faults)
	return t, len(faults) == 0
}

// faults reports what is wrong within a text.
func (p *parser) faults(v value, faults []fault) {
	for _, f := range faults {
		if p.full() {
			return // to find a place takes a walk through the text
		}
		p.add(p.within(v.Node, f.offset), "%s", f.text)
	}
}

// placeholders gives all that a runbook can use, arguments first.
func (p *parser) placeholders() []string {
	var names []string
	for _, a := range p.arguments {
		names = append(names, a.Name)
	}
	for _, g := range givens() {
		names = append(names, g.name)
	}
	return append(names, labelPrefix+"KEY")
}

func (p *parser) argument(name string) *Argument {
	for i := range p.arguments {
		if p.arguments[i].Name == name {
			return &p.arguments[i]
		}
	}
	return nil
}

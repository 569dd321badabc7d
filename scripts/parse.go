package scripts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"muster/fleet"
)

// wholeFile is the key of the value that stands for the whole file.
const wholeFile = "a runbook"

// Parse reads a runbook. name is the name of its file, for messages. It reports all mistakes
// at once, as Mistakes.
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
	if known := keyNames(runbookKeys()); fleet.Foreign(root, known) {
		p.add(at(root), "this is no runbook: it has no known key: want name, steps and others "+
			"of %s", strings.Join(known, ", "))
		return nil, p
	}
	v := value{Node: root, key: wholeFile, keyNode: root}
	seen := readMapping(p, v, runbookKeys(), r)
	if one, ok := seen["prove_group"]; ok && r.ProveGroup && !r.Disruptive {
		p.add(at(one.keyNode), "prove_group is for hosts that are disturbed one after the other: "+
			"say disruptive: true as well")
	}
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
		{"prove_group", func(p *parser, v value, r *Runbook) { r.ProveGroup = p.flag(v) }},
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
		{"library", func(p *parser, v value, r *Runbook) {
			r.Library = p.shell(v)
			p.functions = functionsOf(r.Library)
		}},
		{"staging", func(p *parser, v value, r *Runbook) { r.Staging = p.staging(v) }},
		{"undo", func(p *parser, v value, r *Runbook) { p.undo, r.Undo = at(v.Node), p.word(v) }},
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

// window reads whether a runbook requires a window.
func (p *parser) window(v value) bool {
	const required, none = "required", "none"
	text, ok := p.text(v, wordMax)
	if ok && text != required && text != none {
		p.add(at(v.Node), "window is %s: want %s or %s", brief(text), required, none)
	}
	return text == required
}

// shell reads a shell text and checks its placeholders and its syntax.
func (p *parser) shell(v value) string {
	text, ok := p.text(v, textMax)
	if !ok {
		return ""
	}
	if strings.TrimSpace(text) == "" {
		p.add(at(v.Node), "%s is empty: write a shell text", v.key)
	}
	t, _ := p.template(v, text)
	faults := checkShell(text, t)
	if len(faults) == 0 && p.secretsFit {
		faults = p.exposedIn(text, t)
	}
	p.faults(v, faults)
	return text
}

// template splits a text and reports placeholders that have no text.
func (p *parser) template(v value, text string) (t template, good bool) {
	t, faults := cut(text)
	for _, hole := range t.placeholders() {
		if why := p.unfit(p.within(v.Node, hole.start), hole.ref); why != "" {
			faults = append(faults, fault{hole.start, why})
		}
	}
	p.faults(v, faults)
	return t, len(faults) == 0
}

// unfit returns why a placeholder has no text, or "" if it has. Saved values are checked later,
// when all steps are known.
func (p *parser) unfit(where place, ref string) string {
	if name, ok := strings.CutPrefix(ref, savedPrefix); ok {
		p.uses(where, name)
		return ""
	}
	switch a := p.argument(ref); {
	case isGiven(ref):
	case a == nil:
		return fmt.Sprintf("unknown placeholder {{%s}}: %s", ref, Instead(ref, p.placeholders()))
	case a.Type == TypeFile:
		return fmt.Sprintf("{{%s}} is a file: bring it to the host with a step of kind upload", ref)
	case a.Type == TypeSecret && !p.secretsFit:
		return fmt.Sprintf("{{%s}} is secret: only the text of a step of kind run or check can use it",
			ref)
	}
	return ""
}

// faults reports the mistakes inside a text.
func (p *parser) faults(v value, faults []fault) {
	for _, f := range faults {
		if p.full() {
			return // computing a position walks through the text
		}
		p.add(p.within(v.Node, f.offset), "%s", f.text)
	}
}

// placeholders returns all that a runbook can use, arguments first.
func (p *parser) placeholders() []string {
	var names []string
	for _, a := range p.arguments {
		names = append(names, a.Name)
	}
	for _, g := range givens() {
		names = append(names, g.name)
	}
	return append(names, labelPrefix+"KEY", savedPrefix+"NAME")
}

func (p *parser) argument(name string) *Argument {
	for i := range p.arguments {
		if p.arguments[i].Name == name {
			return &p.arguments[i]
		}
	}
	return nil
}
